SELECT INTERVAL '1 year 2 months' AS ym, INTERVAL '3 days 4 hours 5 minutes 6.789 seconds' AS dt,
       INTERVAL '-1 month 2 days' AS mixed, arrow_cast(1234567, 'Duration(Microsecond)') AS duration
