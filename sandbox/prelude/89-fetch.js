// Requests that a worker sends: to another worker through a service binding (service-binding §1), and to the outside.

const exchangePiece = 65536; // the most that sinkWrite takes

// A body on its way out: [kind, what, declared length, reader]. Kinds: 0 none, 1 all there, 2 one that the host has and
// nobody has touched, 3 a stream of this worker's.
function exchangeBody(state) {
  const kind = state[bodyKind];
  if (kind === bodyNull) return [0, null, -1, null];
  if (bodyUnusable(state)) throw new TypeError('the body was already read or is locked');
  if (kind === bodyText || kind === bodyBytes) {
    const content = state[bodySource];
    state[bodyTaken] = true;
    return [1, content, -1, null];
  }
  const length = responseDeclaredLength(state);
  const number = bodyHandOver(state);
  if (number >= 0) return [2, number, length, null];
  if (kind === bodyIncoming) throw new TypeError('the body is over');
  return [3, null, length, acquireReader(state[bodySource])];
}

// Sends a request and returns a promise of its response. begin(method, url, packed headers, body kind, body, length,
// redirect mode) returns the number of the host operation. flags are those of the response.
function exchangeSend(input, init, begin, flags) {
  const state = new Request(input, init)[fetchSlot];
  const mine = invocation;
  const signal = state[requestSignal];
  const abort = signal === null ? null : signal[kSignal];
  if (abort !== null && abort.aborted) throw abort.reason;
  if (flags === responseIsBasic && requestHref(state).startsWith('data:')) return coreResolve(dataFetch(state));
  if (mine === null) throw new TypeError('requests can be sent only while a handler runs');
  const body = exchangeBody(state);
  const number = begin(state[requestMethod], requestHref(state), headersPack(headersList(requestHeadersOf(state))), body[0], body[1], body[2], state[requestRest].redirect);
  return new CorePromise((resolve, reject) => {
    let response = null;
    const fail = (reason) => {
      if (mine === invocation) host.callAbort(number);
      if (body[3] !== null) markHandled(cancelReader(body[3], reason));
      if (response !== null && response[bodyKind] !== bodyNull && response[bodyKind] !== bodyBytes) errorStream(bodyAsStream(response), reason);
      reject(reason);
    };
    if (abort !== null) signalOnAbort(signal, () => fail(abort.reason));
    coreOperations[number] = [(parts) => {
      response = exchangeResponse(parts, [mine, number], flags);
      resolve(responseMake(response));
    }, reject];
    if (body[3] !== null) exchangePump(mine, number, body[3], fail);
  });
}

// The state of a response that has come: [status, packed headers, body kind, body, url, redirected].
function exchangeResponse(parts, origin, flags) {
  const kind = parts[2] === 0 ? bodyNull : parts[2] === 1 ? bodyBytes : bodyIncoming;
  return [parts[0], parts[1], kind, kind === bodyIncoming ? origin : parts[3], -1, 0, false, '',
    flags | responseFrozen | (parts[5] ? responseIsRedirected : 0), parts[4]];
}

// Writes a stream to the host, a piece at a time. fail is told what went wrong with the stream.
async function exchangePump(mine, number, reader, fail) {
  try {
    for (;;) {
      const { value, done } = await readChunk(reader);
      if (mine !== invocation) return;
      if (done) {
        host.sinkEnd(number, true);
        return;
      }
      if (!idlIsView(value) || idlArrayKind(value) !== 'Uint8Array') throw new TypeError('a chunk of the body is not a Uint8Array');
      const size = idlArrayBytes(value);
      for (let at = 0; at < size; at += exchangePiece) {
        const piece = new Uint8Array(idlArrayBuffer(value), idlArrayOffset(value) + at, size - at > exchangePiece ? exchangePiece : size - at);
        const more = await pending(host.sinkWrite(number, piece));
        if (mine !== invocation) return;
        if (!more) {
          markHandled(cancelReader(reader, new TypeError('nobody reads the body any more')));
          return;
        }
      }
    }
  } catch (failure) {
    if (mine !== invocation) return;
    host.sinkEnd(number, false);
    fail(failure);
  }
}

facadeClass('service', 'ServiceBinding', {
  fetch: (number, input, init) => exchangeSend(input, init,
    (method, url, headers, kind, body, length) => host.serviceFetch(number, method, url, headers, kind, body, length), 0),
}, { fetch: [1, 2] });

idlGlobal('fetch', {
  fetch(input, init = undefined) {
    try {
      webArguments(arguments.length, 1, 'fetch');
      return exchangeSend(input, init, (method, url, headers, kind, body, length, redirect) => {
        if (!url.startsWith('http:') && !url.startsWith('https:')) throw new TypeError('fetch failed: the URL is none of http, https and data');
        return host.outboundFetch(redirect, method, url, headers, kind, body, length);
      }, responseIsBasic);
    } catch (failure) {
      return CorePromise.reject(failure);
    }
  },
}.fetch);
