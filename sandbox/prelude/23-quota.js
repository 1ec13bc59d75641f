// QuotaExceededError (WebIDL): the one DOMException that says how much there was and how much was asked for.

function quotaNumber(value, what) {
  if (value === undefined) return null;
  value = +value;
  if (!Number.isFinite(value)) throw new TypeError(`QuotaExceededError: ${what} is not finite`);
  if (value < 0) throw new RangeError(`QuotaExceededError: ${what} is negative`);
  return value;
}

class QuotaExceededError extends DOMException {
  #quota;
  #requested;

  constructor(message = '', options = undefined) {
    super(message, 'QuotaExceededError');
    const { quota, requested } = webDict(options, 'QuotaExceededError: options');
    this.#quota = quotaNumber(quota, 'quota');
    this.#requested = quotaNumber(requested, 'requested');
    if (this.#quota !== null && this.#requested !== null && this.#requested < this.#quota) {
      throw new RangeError('QuotaExceededError: less was requested than there is');
    }
  }

  get quota() { return this.#quota; }
  get requested() { return this.#requested; }
}
webInterface(QuotaExceededError);
