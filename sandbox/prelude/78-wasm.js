// WebAssembly (its JavaScript interface). The host has the modules, memories, tables, globals and instances of a sandbox by
// their numbers; exported functions are made by the host.

const wasmKinds = ['function', 'table', 'memory', 'global'];
const wasmTypes = { __proto__: null, i32: 0x7f, i64: 0x7e, f32: 0x7d, f64: 0x7c, v128: 0x7b, anyfunc: 0x70, funcref: 0x70, externref: 0x6f };
const wasmNoType = { __proto__: null, 0x70: true, 0x6f: true };
const wasmReturned = 8; // a value that is not an object of ours, for the host
const wasmConstruct = Reflect.construct;
const wasmFreeze = Object.freeze;

function wasmError(name) {
  const C = {
    [name]: function (message, options) { return wasmConstruct(Error, options === undefined ? message === undefined ? [] : [message] : [message, options], new.target ?? C); },
  }[name];
  coreDefine(C, 'length', { __proto__: null, value: 1 });
  C.prototype = coreCreate(Error.prototype);
  for (const [key, value] of [['constructor', C], ['name', name], ['message', '']]) {
    coreDefine(C.prototype, key, { __proto__: null, value, writable: true, configurable: true });
  }
  coreDefine(C, 'prototype', { __proto__: null, writable: false });
  Object.setPrototypeOf(C, Error);
  return C;
}

const WasmCompileError = wasmError('CompileError');
const WasmLinkError = wasmError('LinkError');
const WasmRuntimeError = wasmError('RuntimeError');
host.wasmSetup(WasmCompileError, WasmLinkError, WasmRuntimeError, (list) => [...list], []);

// What already stands for a number: one object per memory, table and global.
const wasmObjects = { table: new Map(), memory: new Map(), global: new Map() };
const wasmMake = {}; // an argument that only this file has

function wasmObject(kind, C, number) {
  let object = wasmObjects[kind].get(number);
  if (object === undefined) object = new C(wasmMake, number);
  return object;
}

function wasmBytes(source, what) {
  if (!idlIsBytes(source)) throw new TypeError(`${what}: the argument is neither an ArrayBuffer nor a view of one`);
  return idlBytes(source);
}

function wasmDescriptor(value, what) {
  if (typeof value !== 'object' && typeof value !== 'function' || value === null) throw new TypeError(`${what}: the descriptor is not an object`);
  return value;
}

// [EnforceRange] unsigned long
function wasmLong(value, what) {
  const n = +value;
  if (!(n > -1 && n < 4294967296)) throw new TypeError(`${what} is not a number of 32 bits`);
  return n < 0 ? 0 : n - n % 1;
}

function wasmLimits(descriptor, what) {
  const { initial } = descriptor;
  if (initial === undefined) throw new TypeError(`${what}: the descriptor has no initial size`);
  const min = wasmLong(initial, `${what}: initial`);
  const { maximum } = descriptor;
  const max = maximum === undefined ? -1 : wasmLong(maximum, `${what}: maximum`);
  return [min, max];
}

class Module {
  #number;
  #about;
  constructor(bytes) {
    this.#number = bytes === wasmMake ? arguments[1] : host.wasmCompile(wasmBytes(bytes, 'WebAssembly.Module'));
  }
  static is(value) { return typeof value === 'object' && value !== null && #number in value; }
  static number(module) { return module.#number; }
  static about(module) {
    if (module.#about === undefined) {
      const flat = host.wasmDescribe(module.#number);
      const about = { imports: [], exports: [] };
      let at = 1;
      for (let n = flat[0]; n > 0; n--, at += 3) about.imports.push({ module: flat[at], name: flat[at + 1], kind: wasmKinds[flat[at + 2]] });
      for (; at < flat.length; at += 2) about.exports.push({ name: flat[at], kind: wasmKinds[flat[at + 1]] });
      module.#about = about;
    }
    return module.#about;
  }
}
const { is: wasmIsModule, number: wasmModuleNumber, about: wasmAbout } = Module;
for (const key of ['is', 'number', 'about']) delete Module[key];

function wasmModule(value, what) {
  if (!wasmIsModule(value)) throw new TypeError(`${what}: the argument is not a WebAssembly.Module`);
  return value;
}

for (const [name, fn] of coreEntries({
  exports(module) {
    webArguments(arguments.length, 1, 'WebAssembly.Module.exports');
    return wasmAbout(wasmModule(module, 'WebAssembly.Module.exports')).exports.map(({ name, kind }) => ({ name, kind }));
  },
  imports(module) {
    webArguments(arguments.length, 1, 'WebAssembly.Module.imports');
    return wasmAbout(wasmModule(module, 'WebAssembly.Module.imports')).imports.map(({ module, name, kind }) => ({ module, name, kind }));
  },
  customSections(module, sectionName) {
    webArguments(arguments.length, 2, 'WebAssembly.Module.customSections');
    wasmModule(module, 'WebAssembly.Module.customSections');
    if (sectionName === undefined) throw new TypeError('WebAssembly.Module.customSections: the name is undefined');
    const name = `${sectionName}`;
    return name === idlUSV(name) ? host.wasmCustom(wasmModuleNumber(module), name) : [];
  },
})) coreDefine(Module, name, { __proto__: null, value: fn, writable: true, enumerable: true, configurable: true });

class Memory {
  #number;
  constructor(descriptor) {
    if (descriptor === wasmMake) {
      this.#number = arguments[1];
    } else {
      const [min, max] = wasmLimits(wasmDescriptor(descriptor, 'WebAssembly.Memory'), 'WebAssembly.Memory');
      if (descriptor.shared) throw new TypeError('WebAssembly.Memory: shared memories are not supported');
      if (min > 65536 || max > 65536 || max >= 0 && max < min) throw new RangeError('WebAssembly.Memory: the size is out of range');
      this.#number = host.wasmMemoryNew(min, max);
    }
    wasmObjects.memory.set(this.#number, this);
  }
  grow(delta) {
    const number = this.#number;
    webArguments(arguments.length, 1, 'WebAssembly.Memory.grow');
    return host.wasmMemoryGrow(number, wasmLong(delta, 'WebAssembly.Memory.grow: the argument'));
  }
  get buffer() {
    const buffer = host.wasmMemoryBuffer(this.#number);
    wasmBuffers.add(buffer);
    return buffer;
  }
  static is(value) { return typeof value === 'object' && value !== null && #number in value; }
  static number(memory) { return memory.#number; }
}
const { is: wasmIsMemory, number: wasmMemoryNumber } = Memory;

class Table {
  #number;
  #type;
  constructor(descriptor, value) {
    if (descriptor === wasmMake) {
      [this.#number, this.#type] = arguments[1];
    } else {
      wasmDescriptor(descriptor, 'WebAssembly.Table');
      const element = `${descriptor.element}`;
      if (element !== 'anyfunc' && element !== 'externref') throw new TypeError('WebAssembly.Table: the element is neither anyfunc nor externref');
      const [min, max] = wasmLimits(descriptor, 'WebAssembly.Table');
      if (max >= 0 && max < min) throw new RangeError('WebAssembly.Table: the maximum is below the initial size');
      this.#type = wasmTypes[element];
      this.#number = host.wasmTableNew(this.#type, min, max, wasmDefault(this.#type, arguments.length > 1, value));
    }
    wasmObjects.table.set(this.#number, this);
  }
  get length() { return host.wasmTableSize(this.#number); }
  grow(delta, value) {
    const number = this.#number;
    webArguments(arguments.length, 1, 'WebAssembly.Table.grow');
    return host.wasmTableGrow(number, wasmLong(delta, 'WebAssembly.Table.grow: the argument'), wasmDefault(this.#type, arguments.length > 1, value));
  }
  get(index) {
    const number = this.#number;
    webArguments(arguments.length, 1, 'WebAssembly.Table.get');
    return host.wasmTableGet(number, wasmLong(index, 'WebAssembly.Table.get: the argument'));
  }
  set(index, value) {
    const number = this.#number;
    webArguments(arguments.length, 1, 'WebAssembly.Table.set');
    host.wasmTableSet(number, wasmLong(index, 'WebAssembly.Table.set: the argument'), wasmDefault(this.#type, arguments.length > 1, value));
  }
  static is(value) { return typeof value === 'object' && value !== null && #number in value; }
  static number(table) { return table.#number; }
}
const { is: wasmIsTable, number: wasmTableNumber } = Table;

// The value of an argument that may be left out.
function wasmDefault(type, given, value) {
  return type === 0x70 && !given ? null : value;
}

class Global {
  #number;
  constructor(descriptor, value) {
    if (descriptor === wasmMake) {
      this.#number = arguments[1];
    } else {
      wasmDescriptor(descriptor, 'WebAssembly.Global');
      const mutable = !!descriptor.mutable;
      const name = `${descriptor.value}`;
      const type = wasmTypes[name];
      if (type === undefined || name === 'funcref') throw new TypeError('WebAssembly.Global: the type is not known');
      if (type === 0x7b) throw new TypeError('WebAssembly.Global: values of the type v128 have no counterpart in JavaScript');
      this.#number = host.wasmGlobalNew(type, mutable, type === 0x6f && arguments.length < 2 ? null : value);
      if (type === 0x6f && (arguments.length < 2 || value === undefined)) host.wasmGlobalInit(this.#number, undefined);
    }
    wasmObjects.global.set(this.#number, this);
  }
  get value() { return host.wasmGlobalGet(this.#number); }
  set value(value) {
    const number = this.#number;
    webArguments(arguments.length, 1, 'WebAssembly.Global.value');
    host.wasmGlobalSet(number, value);
  }
  valueOf() { return host.wasmGlobalGet(this.#number); }
  static is(value) { return typeof value === 'object' && value !== null && #number in value; }
  static number(global) { return global.#number; }
}
const { is: wasmIsGlobal, number: wasmGlobalNumber } = Global;

const wasmGive = { __proto__: null,
  function: (value) => typeof value === 'function' ? [0, value] : [-1, undefined],
  table: (value) => wasmIsTable(value) ? [1, wasmTableNumber(value)] : [-1, undefined],
  memory: (value) => wasmIsMemory(value) ? [2, wasmMemoryNumber(value)] : [-1, undefined],
  global: (value) => wasmIsGlobal(value) ? [3, wasmGlobalNumber(value)] : [wasmReturned, value],
};

// Reads the imports, in their order: what the host is given for each.
function wasmRead(module, imports) {
  const about = wasmAbout(module);
  if (imports !== undefined && (typeof imports !== 'object' && typeof imports !== 'function' || imports === null)) throw new TypeError('WebAssembly.Instance: the imports are not an object');
  if (about.imports.length > 0 && imports === undefined) throw new TypeError('WebAssembly.Instance: the module has imports and none are given');
  const given = [];
  for (const { module: from, name, kind } of about.imports) {
    const object = imports[from];
    if (typeof object !== 'object' && typeof object !== 'function' || object === null) throw new TypeError(`WebAssembly.Instance: the imports have no object ${from}`);
    const [k, value] = wasmGive[kind](object[name]);
    given.push(k, value);
  }
  return given;
}

function wasmInstantiate(module, given) {
  const about = wasmAbout(module);
  const flat = host.wasmInstantiate(wasmModuleNumber(module), given);
  const exports = coreCreate(null);
  about.exports.forEach(({ name, kind }, i) => {
    let value = flat[2 * i + 1];
    if (kind === 'memory') value = wasmObject('memory', Memory, value);
    else if (kind === 'global') value = wasmObject('global', Global, value);
    else if (kind === 'table') value = wasmTableObject(value);
    coreDefine(exports, name, { __proto__: null, value, enumerable: true });
  });
  return wasmFreeze(exports);
}

function wasmTableObject(number) {
  return wasmObjects.table.get(number) ?? new Table(wasmMake, [number, host.wasmTableType(number)]);
}

class Instance {
  #exports;
  constructor(module, importObject) {
    this.#exports = wasmInstantiate(wasmModule(module, 'WebAssembly.Instance'),
      arguments[2] === wasmMake ? importObject : wasmRead(module, importObject));
  }
  get exports() { return this.#exports; }
}

const WebAssemblyNamespace = {};
for (const C of [Memory, Table, Global]) {
  delete C.is;
  delete C.number;
}
coreDefine(Instance.prototype.constructor, 'length', { __proto__: null, value: 1 });
for (const C of [Table, Global]) coreDefine(C, 'length', { __proto__: null, value: 1 });
for (const C of [Module, Instance, Memory, Table, Global]) {
  coreDefine(C.prototype, clonePlatform, { __proto__: null, value: true });
  webEnumerable(C.prototype, ['constructor']);
  coreDefine(C.prototype, Symbol.toStringTag, { __proto__: null, value: `WebAssembly.${C.name}`, configurable: true });
}
idlLengths(Table, { grow: 1, set: 1 });
for (const C of [Module, Instance, Memory, Table, Global, WasmCompileError, WasmLinkError, WasmRuntimeError]) {
  coreDefine(WebAssemblyNamespace, C.name, { __proto__: null, value: C, writable: true, configurable: true });
}
for (const [name, fn] of coreEntries({
  validate(bytes) {
    webArguments(arguments.length, 1, 'WebAssembly.validate');
    return host.wasmValidate(wasmBytes(bytes, 'WebAssembly.validate'));
  },
  compile(bytes) {
    return wasmPromise(() => {
      webArguments(arguments.length, 1, 'WebAssembly.compile');
      const copy = idlCopyBytes(wasmBytes(bytes, 'WebAssembly.compile'));
      return () => new Module(copy);
    });
  },
  instantiate(source, importObject) {
    return wasmPromise(() => {
      webArguments(arguments.length, 1, 'WebAssembly.instantiate');
      if (importObject !== undefined && (typeof importObject !== 'object' && typeof importObject !== 'function' || importObject === null)) {
        throw new TypeError('WebAssembly.instantiate: the imports are not an object');
      }
      if (wasmIsModule(source)) {
        const given = wasmRead(source, importObject);
        return () => new Instance(source, given, wasmMake);
      }
      const copy = idlCopyBytes(wasmBytes(source, 'WebAssembly.instantiate'));
      return () => {
        const module = new Module(copy);
        return { module, instance: new Instance(module, importObject) };
      };
    });
  },
})) coreDefine(WebAssemblyNamespace, name, { __proto__: null, value: fn, writable: true, enumerable: true, configurable: true });
coreDefine(WebAssemblyNamespace.instantiate, 'length', { __proto__: null, value: 1 });
coreDefine(WebAssemblyNamespace, Symbol.toStringTag, { __proto__: null, value: 'WebAssembly', configurable: true });
expose('WebAssembly', WebAssemblyNamespace);

// A promise for what the function that begin returns gives, a task later. What begin throws rejects it.
function wasmPromise(begin) {
  return new CorePromise((resolve, reject) => {
    const work = begin();
    coreThen(coreResolve(), () => {
      try {
        resolve(work());
      } catch (failure) {
        reject(failure);
      }
    });
  });
}

// The buffer of a memory is detached by nothing but its growth.
for (const name of ['transfer', 'transferToFixedLength']) {
  const original = ArrayBuffer.prototype[name];
  coreDefine(ArrayBuffer.prototype, name, {
    __proto__: null, writable: true, configurable: true,
    value: { [name](newLength) {
      if (wasmBuffers.has(this)) throw new TypeError('the buffer belongs to a WebAssembly.Memory');
      return coreApply(original, this, arguments);
    } }[name],
  });
  coreDefine(ArrayBuffer.prototype[name], 'length', { __proto__: null, value: 0 });
}

// Called by the host for an import of a file of the bundle that is WebAssembly.
function wasmImported(number) { return new Module(wasmMake, number); }
