SELECT arrow_cast(x, 'Float32') AS f32, arrow_cast(x, 'Float64') AS f64
FROM (VALUES (1.5), (-0.1), (CAST('NaN' AS DOUBLE)), (CAST('Infinity' AS DOUBLE)), (NULL), (1e300), (5e-324)) AS t(x)
