// What env holds besides values: one object per binding, made for each invocation. A facade knows its binding by a number
// that means something to the host only together with the running version.

const facadeNumber = coreSlot('binding');
const facadeKinds = { __proto__: null }; // kind -> prototype

// Adds the bindings to env. bound is the JSON of [kind, name] of each. A name may be any property key, __proto__ too.
function bindingsInto(env, bound) {
  const list = coreParse(bound);
  for (let i = 0; i < list.length; i++) {
    const value = { __proto__: facadeKinds[list[i][0]], [facadeNumber]: i };
    coreDefine(env, list[i][1], { __proto__: null, value, writable: true, configurable: true, enumerable: true });
  }
}

// Makes the class of a kind of binding. Its methods take (number, arguments) and return the number of a host operation or
// a promise; as users see them they check their receiver and the number of arguments, and fail by rejecting.
// lengths: method -> [fewest, most] arguments.
function facadeClass(kind, name, methods, lengths) {
  const C = { [name]: class { constructor() { throw new TypeError('Illegal constructor'); } } }[name];
  for (const key of idlOwnKeys(methods)) {
    const run = methods[key];
    const fewest = lengths[key][0];
    const most = lengths[key][1];
    const method = {
      [key](...given) {
        try {
          const number = isObject(this) && corePrototypeOf(this) === C.prototype ? this[facadeNumber] : undefined;
          if (number === undefined) throw idlIllegal();
          if (given.length < fewest || given.length > most) {
            throw new TypeError(`${name}.${key} takes ${fewest === most ? fewest : `${fewest} to ${most}`} arguments, not ${given.length}`);
          }
          const operation = run(number, given[0], given[1], given[2], given[3], given[4]);
          return typeof operation === 'number' ? pending(operation) : operation;
        } catch (failure) {
          return CorePromise.reject(failure);
        }
      },
    }[key];
    coreDefine(method, 'length', { __proto__: null, value: fewest, configurable: true });
    coreDefine(C.prototype, key, { __proto__: null, value: method, writable: true, configurable: true, enumerable: true });
  }
  coreDefine(C.prototype, Symbol.toStringTag, { __proto__: null, value: name, configurable: true });
  facadeKinds[kind] = C.prototype;
}

function facadeNamed(name, message) {
  const error = new Error(message);
  error.name = name;
  return error;
}

const facadeWellFormed = coreUncurry(String.prototype.isWellFormed);

// The members of an options object: plain, and with no other names than these. undefined stands for none.
function facadeOptions(what, value, names) {
  if (value === undefined) return {};
  if (!isObject(value)) throw new TypeError(`${what}: the options are not an object`);
  const prototype = corePrototypeOf(value);
  if (prototype !== null && prototype !== coreObjectPrototype) throw new TypeError(`${what}: the options are not a plain object`);
  const copy = { __proto__: null };
  const keys = idlOwnKeys(value);
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    if (typeof key !== 'string' || !facadeIncludes(names, key)) throw new TypeError(`${what}: there is no option ${coreString(key)}`);
    copy[key] = value[key];
  }
  return copy;
}

const facadeIncludes = coreUncurry(Array.prototype.includes);
const coreString = String;

// An integer option within its range; absent is what stands for its absence.
function facadeInteger(what, value, least, most, absent) {
  if (value === undefined) return absent;
  if (typeof value !== 'number' || value % 1 !== 0 || value < least || value > most) {
    throw new TypeError(`${what} is not an integer from ${least} to ${most}`);
  }
  return value;
}

function facadeString(what, value) {
  if (typeof value !== 'string') throw new TypeError(`${what} is not a string`);
  return value;
}
