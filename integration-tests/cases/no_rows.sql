SELECT *, make_array(1, NULL) AS numbers, arrow_cast('x', 'Utf8View') AS view FROM tpch.customer WHERE c_custkey < 0
