SELECT arrow_cast(t, 'Date32') AS d32, arrow_cast(t, 'Date64') AS d64,
       arrow_cast(t, 'Timestamp(Second, None)') AS s, arrow_cast(t, 'Timestamp(Millisecond, Some("UTC"))') AS ms,
       arrow_cast(t, 'Timestamp(Microsecond, Some("+05:45"))') AS us, arrow_cast(t, 'Timestamp(Nanosecond, None)') AS ns,
       arrow_cast(arrow_cast(t, 'Timestamp(Nanosecond, None)'), 'Time64(Nanosecond)') AS clock
FROM (VALUES ('1969-12-31T23:59:59.999'), ('2024-02-29T12:34:56.789'), (NULL), ('1900-01-01T00:00:00')) AS v(t)
