// An image codec that comes as WebAssembly from npm, unmodified. Its modules are compiled when the worker is deployed; the
// instances are made at top level here, and so they are part of the worker's snapshot.
import encode, { init as initEncoder } from "@jsquash/qoi/encode.js";
import decode, { init as initDecoder } from "@jsquash/qoi/decode.js";
import encoder from "@jsquash/qoi/codec/enc/qoi_enc.wasm";
import decoder from "@jsquash/qoi/codec/dec/qoi_dec.wasm";

// What the decoder makes its results of; browsers have it.
globalThis.ImageData ??= class ImageData {
  constructor(data, width, height) {
    Object.assign(this, { data, width, height });
  }
};

await initEncoder(encoder);
await initDecoder(decoder);

const most = 1024;

// A gradient from black to white and from left to right, with some blue.
function gradient(width, height) {
  const data = new Uint8ClampedArray(width * height * 4);
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      data[i++] = (x * 255) / width;
      data[i++] = (y * 255) / height;
      data[i++] = 128;
      data[i++] = 255;
    }
  }
  return new ImageData(data, width, height);
}

export default {
  async fetch(request) {
    const url = new URL(request.url);
    if (request.method === "POST") {
      const { width, height, data } = await decode(await request.arrayBuffer());
      return Response.json({ width, height, first: [...data.slice(0, 4)], last: [...data.slice(-4)] });
    }
    const size = (name) => Math.min(most, Math.max(1, Number(url.searchParams.get(name)) || 64));
    const image = await encode(gradient(size("width"), size("height")));
    return new Response(image, { headers: { "Content-Type": "image/qoi" } });
  },
};
