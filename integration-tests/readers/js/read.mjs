// Reads an Arrow stream from standard input with apache-arrow and prints a JSON array a row, numbers
// as text so that none is rounded on its way. With `--ask ADDRESS CERTIFICATE USER PASSWORD BODY` it
// posts the body to a gateway and reads the answer instead.

import { readFileSync } from "node:fs";
import { request } from "node:https";
import { compressionRegistry, CompressionType, RecordBatchReader, Type } from "apache-arrow";
import { decompress as unzstd } from "fzstd";
import lz4 from "lz4js";

// apache-arrow opens no codec by itself: this is its hook for one. fzstd answers with a part of a larger
// buffer, which need not be aligned for 64-bit views: hence the copy.
compressionRegistry.set(CompressionType.ZSTD, { decode: (data) => unzstd(data).slice() });
compressionRegistry.set(CompressionType.LZ4_FRAME, { decode: (data) => lz4.decompress(data) });

/** A number of any width as decimal text, from words in little endian. */
function decimalText(words) {
  let value = 0n;
  for (let i = words.length - 1; i >= 0; i--) value = (value << 32n) | BigInt(words[i]);
  const bits = BigInt(words.length * 32);
  if (value >= 1n << (bits - 1n)) value -= 1n << bits;
  return value.toString();
}

/** The bits of a float, as hexadecimal digits: no two programs print floats alike. */
function floatBits(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return view.getBigUint64(0).toString(16).padStart(16, "0");
}

function cell(vector, index) {
  if (!vector.isValid(index)) return null;
  const type = vector.type;
  switch (type.typeId) {
    case Type.Bool:
    case Type.Utf8:
    case Type.LargeUtf8:
    case Type.Utf8View:
      return vector.get(index);
    case Type.Float:
      return floatBits(vector.get(index));
    case Type.Binary:
    case Type.LargeBinary:
      return Buffer.from(vector.get(index)).toString("hex");
    case Type.Decimal:
      return decimalText(vector.get(index));
    case Type.Date:
    case Type.Timestamp:
      return raw(vector, index);
    case Type.List:
    case Type.FixedSizeList: {
      const items = vector.get(index);
      return Array.from({ length: items.length }, (_, i) => cell(items, i));
    }
    case Type.Struct:
      return type.children.map((_, i) => cell(vector.getChildAt(i), index));
    case Type.Dictionary:
    case Type.Null:
      throw new Error(`the stream holds a column of type ${type}`);
    default:
      return String(vector.get(index));
  }
}

/** The stored integer: get() turns days and microseconds into a rounded number of milliseconds. */
function raw(vector, index) {
  let row = index;
  for (const data of vector.data) {
    if (row < data.length) {
      const stride = data.values.length / data.length >= 2 ? 2 : 1;
      if (data.values instanceof BigInt64Array || stride === 1) return String(data.values[row]);
      const low = BigInt(data.values[row * 2] >>> 0);
      return String((BigInt(data.values[row * 2 + 1]) << 32n) | low);
    }
    row -= data.length;
  }
  throw new Error(`no row ${index}`);
}

/** The answer to a query in one call, as a stream that fails when its connection does. */
function ask(address, certificate, user, password, body) {
  const options = {
    method: "POST",
    ca: readFileSync(certificate),
    auth: `${user}:${password}`,
    headers: { "content-type": "application/json", accept: "application/vnd.apache.arrow.stream" },
  };
  return new Promise((resolve, reject) => {
    const asking = request(`https://${address}/api/v1/query`, options, (answer) => {
      if (answer.statusCode === 200) resolve(answer);
      else reject(new Error(`status ${answer.statusCode}`));
    });
    asking.on("error", reject).end(body);
  });
}

/** The pieces of a stream. apache-arrow's own way of reading a Node.js stream takes an error for the end. */
async function* pieces(stream) {
  yield* stream;
}

const input = process.argv[2] === "--ask" ? await ask(...process.argv.slice(3)) : process.stdin;
const reader = await RecordBatchReader.from(pieces(input));
await reader.open();
for await (const batch of reader) {
  const columns = batch.schema.fields.map((_, i) => batch.getChildAt(i));
  const lines = [];
  for (let row = 0; row < batch.numRows; row++) {
    lines.push(JSON.stringify(columns.map((column) => cell(column, row))));
  }
  const text = lines.length ? lines.join("\n") + "\n" : "";
  if (!process.stdout.write(text)) await new Promise((resolve) => process.stdout.once("drain", resolve));
}
