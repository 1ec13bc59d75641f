// Queues: the producer in env (queue §3) and the batch that the queue handler gets (queue §5).

// A message's body as the host takes it: a string, or bytes.
function queueBody(value) {
  if (typeof value !== 'string' && !idlIsBytes(value)) throw facadeNamed('invalid_body', 'the body is neither a string nor bytes');
  return value;
}

// The size of a body, as far as it is known without encoding it: three bytes for each unit of a string are the most.
function queueCheckSize(body) {
  const size = typeof body !== 'string' ? idlBytes(body).byteLength : body.length > 127000 ? body.length
    : body.length * 3 > 127000 ? host.utf8Encode(body).length : 0;
  if (size > 127000) throw facadeNamed('message_too_large', 'a body is larger than 127000 bytes');
}

const queueIsArray = Array.isArray;

facadeClass('queue', 'QueueProducer', {
  send(number, body, options) {
    const { delaySeconds } = facadeOptions('send', options, ['delaySeconds']);
    const delay = facadeInteger('delaySeconds', delaySeconds, 0, 43200, -1);
    queueBody(body);
    queueCheckSize(body);
    return coreThen(pending(host.queueSend(number, [body, delay], false)), (ids) => ids[0]);
  },

  sendBatch(number, messages) {
    if (!queueIsArray(messages) || messages.length === 0) throw new TypeError('sendBatch: the messages are not an array with something in it');
    const count = messages.length;
    if (count > 100) throw facadeNamed('batch_too_large', 'a batch has at most 100 messages');
    const flat = [];
    for (let i = 0; i < count; i++) {
      const message = messages[i];
      if (!isObject(message)) throw new TypeError('sendBatch: a message is not an object');
      const { body, delaySeconds } = facadeOptions('sendBatch', message, ['body', 'delaySeconds']);
      const delay = facadeInteger('delaySeconds', delaySeconds, 0, 43200, -1);
      queueBody(body);
      queueCheckSize(body);
      flat[2 * i] = body;
      flat[2 * i + 1] = delay;
    }
    return pending(host.queueSend(number, flat, true));
  },
}, { send: [1, 2], sendBatch: [1, 1] });

const batchSlot = coreSlot('batch');

class MessageBatch {
  constructor() { throw new TypeError('Illegal constructor'); }

  acknowledge(...given) { return batchSettle(this, 'acknowledge', false, given, 1, 1); }
  retry(...given) { return batchSettle(this, 'retry', true, given, 1, 2); }
  acknowledgeAll(...given) { return batchSettle(this, 'acknowledgeAll', false, given, 0, 0); }
  retryAll(...given) { return batchSettle(this, 'retryAll', true, given, 0, 1); }
}
coreDefine(MessageBatch.prototype, Symbol.toStringTag, { __proto__: null, value: 'MessageBatch', configurable: true });
const batchPrototype = MessageBatch.prototype;
for (const [name, length] of [['acknowledge', 1], ['retry', 1]]) coreDefine(MessageBatch.prototype[name], 'length', { __proto__: null, value: length });

// One settlement. least is also the number of arguments that name a message.
function batchSettle(batch, name, retry, given, least, most) {
  try {
    const mine = isObject(batch) ? batch[batchSlot] : undefined;
    if (mine === undefined) throw idlIllegal();
    if (given.length < least || given.length > most) throw new TypeError(`${name}: ${given.length} arguments are too ${given.length < least ? 'few' : 'many'}`);
    const id = least === 1 ? facadeString('the message id', given[0]) : null;
    const delay = facadeInteger('delaySeconds', retry ? given[least] : undefined, 0, 43200, -1);
    if (mine !== invocation) throw facadeNamed('unknown_batch', 'the batch has ended');
    return pending(host.settle(retry, id, delay));
  } catch (failure) {
    return CorePromise.reject(failure);
  }
}

const batchFreeze = Object.freeze;

// The argument of the queue handler: flat holds id, timestamp, attempts and body of each message.
function newMessageBatch(batchId, queue, flat) {
  const messages = [];
  for (let i = 0; i < flat.length; i += 4) {
    messages[i / 4] = batchFreeze({ id: flat[i], timestampMillis: flat[i + 1], attempts: flat[i + 2], body: flat[i + 3] });
  }
  const batch = { __proto__: batchPrototype, batchId, queue, messages: batchFreeze(messages) };
  coreDefine(batch, batchSlot, { __proto__: null, value: invocation });
  return batchFreeze(batch);
}
