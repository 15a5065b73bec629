SELECT t AS plain, arrow_cast(t, 'Utf8View') AS view, arrow_cast(t, 'LargeUtf8') AS large, arrow_cast(t, 'Binary') AS bytes,
       arrow_cast(arrow_cast(t, 'Binary'), 'BinaryView') AS bytes_view, repeat(t, 40) AS long
FROM (VALUES (''), ('a'), ('日本語 — 👩‍👩‍👧'), (NULL), ('it''s; -- no comment'), (chr(9) || chr(10) || '\')) AS v(t)
