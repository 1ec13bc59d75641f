// data: URLs (Fetch, "data: URL processor"): what fetch answers without going anywhere.

const dataPercent = /%([0-9A-Fa-f]{2})/g;
const dataTrim = /^[\t\n\f\r ]+|[\t\n\f\r ]+$/g;
const dataBase64 = /; *base64$/i;
const dataFromBase64 = Uint8Array.fromBase64;

// A string whose characters are bytes, as bytes.
function dataBytes(text) {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// The response to a request for a data: URL. Throws what fetch rejects with.
function dataFetch(state) {
  const href = requestHref(state);
  const hash = href.indexOf('#');
  const url = hash < 0 ? href : href.slice(0, hash);
  const comma = url.indexOf(',');
  if (comma < 0) throw new TypeError('fetch failed: the data: URL has no comma');
  let type = url.slice(5, comma).replace(dataTrim, '');
  const text = url.slice(comma + 1).replace(dataPercent, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  let bytes;
  if (dataBase64.test(type)) {
    type = type.replace(dataBase64, '');
    try {
      bytes = coreApply(dataFromBase64, Uint8Array, [text]);
    } catch {
      throw new TypeError('fetch failed: the data: URL is not base64');
    }
  } else {
    bytes = dataBytes(text);
  }
  if (type.startsWith(';')) type = `text/plain${type}`;
  const mime = host.mimeType(type)?.[0] ?? 'text/plain;charset=US-ASCII';
  if (state[requestMethod] === 'HEAD') bytes = new Uint8Array(0);
  const response = exchangeResponse([200, `content-type\n${mime}\n`, 1, bytes, url, false], null, responseIsBasic);
  response[responseReason] = 'OK';
  return responseMake(response);
}
