SELECT INTERVAL '1 year 2 months' AS ym, INTERVAL '3 days 04:05:06.789' AS dt, INTERVAL '-1 month 2 days' AS mixed,
       arrow_cast(1234567, 'Duration(Microsecond)') AS duration
