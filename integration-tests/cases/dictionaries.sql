SELECT arrow_cast(n_name, 'Dictionary(Int32, Utf8)') AS name, arrow_cast(n_regionkey, 'Dictionary(Int8, Int64)') AS region,
       make_array(arrow_cast(n_name, 'Dictionary(Int32, Utf8)')) AS names
FROM tpch.nation
ORDER BY n_nationkey
