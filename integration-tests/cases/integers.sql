SELECT arrow_cast(-128, 'Int8') AS i8, arrow_cast(-32768, 'Int16') AS i16, arrow_cast(-2147483648, 'Int32') AS i32,
       -9223372036854775808 AS i64, arrow_cast(255, 'UInt8') AS u8, arrow_cast(65535, 'UInt16') AS u16,
       arrow_cast(4294967295, 'UInt32') AS u32, arrow_cast('18446744073709551615', 'UInt64') AS u64,
       true AS yes, NULL AS nothing, CAST(NULL AS BIGINT) AS null_i64
