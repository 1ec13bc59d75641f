// Intl.NumberFormat and Intl.DateTimeFormat (ECMA-402) for en-US, UTC and fixed offsets, and the toLocaleString methods over
// them. The host formats; here options are resolved. What is not supported is a RangeError: other locales too, since a text
// in the wrong language is worse than none.

const intlTag = /^(?:[a-z]{2,3}|[a-z]{5,8})(?:-[a-z0-9]{1,8})*$/i;
const intlStringify = JSON.stringify;
const intlNumeric = /^-?[0-9]+(?:\.[0-9]+)?$/;

// The locale of a request for some: 'en-US' or 'en'. all: every one that is supported, for supportedLocalesOf.
function intlLocales(locales, all) {
  const given = locales === undefined ? [] : typeof locales === 'string' ? [locales] : Array.from(Object(locales));
  if (locales === null) throw new TypeError('Intl: null is no list of locales');
  const supported = [];
  for (const one of given) {
    if (typeof one !== 'string' && (typeof one !== 'object' || one === null)) throw new TypeError('Intl: a locale is not a string');
    const tag = `${one}`;
    if (!intlTag.test(tag)) throw new RangeError(`Intl: ${tag.slice(0, 64)} is not a language tag`);
    const [base, extension] = tag.toLowerCase().split('-u-');
    if ((base === 'en' || base === 'en-us') && (extension === undefined || /^(?:(?:nu-latn|ca-gregory|hc-h(?:11|12|23|24))(?:-|$))+$/.test(extension))) {
      supported.push(base === 'en' ? 'en' : 'en-US');
    }
  }
  if (all) return supported;
  if (given.length > 0 && supported.length === 0) throw new RangeError(`Intl: the locale ${`${given[0]}`.slice(0, 64)} is not supported; only en-US is`);
  return supported.length > 0 ? supported[0] : 'en-US';
}

// An option that is one of some words. no: words that the standard has and that are not supported.
function intlWord(options, name, words, otherwise, no = []) {
  let value = options[name];
  if (value === undefined) return otherwise;
  value = `${value}`;
  if (no.includes(value)) throw new RangeError(`Intl: ${name} "${value}" is not supported`);
  if (!words.includes(value)) throw new RangeError(`Intl: "${value.slice(0, 64)}" is no value of ${name}`);
  return value;
}

function intlDigits(options, name, least, most, otherwise) {
  let value = options[name];
  if (value === undefined) return otherwise;
  value = +value;
  if (!(value >= least && value <= most)) throw new RangeError(`Intl: ${name} is not between ${least} and ${most}`);
  return Math.floor(value);
}

function intlRefuse(options, names) {
  for (const [name, ...allowed] of names) {
    if (options[name] !== undefined && !allowed.includes(`${options[name]}`)) throw new RangeError(`Intl: ${name} "${`${options[name]}`.slice(0, 64)}" is not supported`);
  }
}

function intlOptionsOf(options) {
  if (options === undefined) return emptyDict;
  if (options === null) throw new TypeError('Intl: the options are null');
  return Object(options);
}

function intlNumberOptions(options) {
  intlRefuse(options, [['numberingSystem', 'latn'], ['unit'], ['roundingMode', 'halfExpand'], ['roundingIncrement', '1'], ['roundingPriority', 'auto'], ['trailingZeroDisplay', 'auto']]);
  const o = { __proto__: null, style: intlWord(options, 'style', ['decimal', 'percent', 'currency'], 'decimal', ['unit']) };
  let { currency } = options;
  if (currency !== undefined && !/^[A-Za-z]{3}$/.test(currency = `${currency}`)) throw new RangeError('Intl: the currency is not a code of three letters');
  const currencyDisplay = intlWord(options, 'currencyDisplay', ['symbol', 'narrowSymbol', 'code'], 'symbol', ['name']);
  const currencySign = intlWord(options, 'currencySign', ['standard', 'accounting'], 'standard');
  o.notation = intlWord(options, 'notation', ['standard', 'scientific', 'engineering', 'compact'], 'standard');
  let least = 0, most = o.style === 'percent' ? 0 : 3;
  if (o.style === 'currency') {
    if (currency === undefined) throw new TypeError('Intl: the style currency needs a currency');
    o.currency = currency.toUpperCase();
    o.currencyDisplay = currencyDisplay;
    o.currencySign = currencySign;
    if (o.notation === 'standard') least = most = host.intlCurrency(o.currency);
  }
  o.minimumIntegerDigits = intlDigits(options, 'minimumIntegerDigits', 1, 21, 1);
  let min = intlDigits(options, 'minimumFractionDigits', 0, 100, undefined);
  let max = intlDigits(options, 'maximumFractionDigits', 0, 100, undefined);
  if (options.minimumSignificantDigits !== undefined || options.maximumSignificantDigits !== undefined) {
    o.minimumSignificantDigits = intlDigits(options, 'minimumSignificantDigits', 1, 21, 1);
    o.maximumSignificantDigits = intlDigits(options, 'maximumSignificantDigits', o.minimumSignificantDigits, 21, 21);
  } else if (min !== undefined || max !== undefined || o.notation !== 'compact') {
    if (min === undefined) min = Math.min(least, max ?? least);
    if (max === undefined) max = Math.max(most, min);
    if (min > max) throw new RangeError('Intl: minimumFractionDigits is more than maximumFractionDigits');
    o.minimumFractionDigits = min;
    o.maximumFractionDigits = max;
  } else {
    o.compactRounding = true;
  }
  const compactDisplay = intlWord(options, 'compactDisplay', ['short', 'long'], 'short');
  if (o.notation === 'compact') o.compactDisplay = compactDisplay;
  const grouping = options.useGrouping;
  const usual = o.notation === 'compact' ? 'min2' : 'auto';
  if (grouping === undefined || grouping === 'true' || grouping === 'false') o.useGrouping = usual;
  else if (grouping === true) o.useGrouping = 'always';
  else if (!grouping) o.useGrouping = 'false';
  else o.useGrouping = intlWord(options, 'useGrouping', ['always', 'auto', 'min2'], usual);
  o.signDisplay = intlWord(options, 'signDisplay', ['auto', 'always', 'never', 'exceptZero', 'negative'], 'auto');
  return o;
}

const intlParts = { __proto__: null, weekday: ['long', 'short', 'narrow'], year: ['numeric', '2-digit'], month: ['numeric', '2-digit', 'long', 'short', 'narrow'],
  day: ['numeric', '2-digit'], hour: ['numeric', '2-digit'], minute: ['numeric', '2-digit'], second: ['numeric', '2-digit'] };
const intlDay = ['weekday', 'year', 'month', 'day'];
const intlClock = ['hour', 'minute', 'second'];

// required and otherwise: which components must be there, and which are taken if none is: 'date', 'time', 'any' or 'all'.
function intlDateOptions(options, required, otherwise) {
  intlRefuse(options, [['calendar', 'gregory'], ['numberingSystem', 'latn'], ['era'], ['dayPeriod']]);
  const o = { __proto__: null };
  const zone = options.timeZone === undefined ? 'UTC' : `${options.timeZone}`;
  o.timeZone = host.intlZone(zone);
  if (o.timeZone === undefined) throw new RangeError(`Intl: the time zone ${zone.slice(0, 64)} is not supported; only UTC and offsets such as +02:00 are`);
  let shown = false, named = false;
  for (const name in intlParts) {
    const value = intlWord(options, name, intlParts[name], undefined);
    if (value === undefined) continue;
    o[name] = value;
    named = true;
    if (required === 'any' || (required === 'date' ? intlDay : intlClock).includes(name)) shown = true;
  }
  const fraction = intlDigits(options, 'fractionalSecondDigits', 1, 3, undefined);
  if (fraction !== undefined) {
    o.fractionalSecondDigits = fraction;
    named = true;
    if (required !== 'date') shown = true;
  }
  const zoneName = intlWord(options, 'timeZoneName', ['short', 'long'], undefined, ['shortOffset', 'longOffset', 'shortGeneric', 'longGeneric']);
  if (zoneName !== undefined) o.timeZoneName = zoneName;
  const styles = ['full', 'long', 'medium', 'short'];
  o.dateStyle = intlWord(options, 'dateStyle', styles, undefined);
  o.timeStyle = intlWord(options, 'timeStyle', styles, undefined);
  if (o.dateStyle !== undefined || o.timeStyle !== undefined) {
    if (named || zoneName !== undefined) throw new TypeError('Intl: a style does not go with single components');
    if (required === 'date' && o.timeStyle !== undefined || required === 'time' && o.dateStyle !== undefined) throw new TypeError('Intl: this style does not go with this method');
  } else if (!shown) {
    if (otherwise !== 'time') o.year = o.month = o.day = 'numeric';
    if (otherwise !== 'date') {
      o.hour = 'numeric';
      o.minute = o.second = '2-digit';
    }
  }
  const cycle = intlWord(options, 'hourCycle', ['h11', 'h12', 'h23', 'h24'], 'h12');
  if (o.hour !== undefined || o.timeStyle !== undefined) o.hourCycle = options.hour12 === undefined ? cycle : options.hour12 ? 'h12' : 'h23';
  return o;
}

function intlJoin(parts) {
  let text = '';
  for (let i = 1; i < parts.length; i += 2) text += parts[i];
  return text;
}

function intlList(parts) {
  const list = [];
  for (let i = 0; i < parts.length; i += 2) list.push({ type: parts[i], value: parts[i + 1] });
  return list;
}

function intlNumber(json, value) {
  let text;
  if (typeof value === 'string' && intlNumeric.test(value)) text = value;
  else if (typeof value === 'bigint') text = `${value}`;
  else {
    if (typeof value === 'object' && value !== null) value = value.valueOf();
    value = typeof value === 'bigint' ? value : +value;
    text = Object.is(value, -0) ? '-0' : `${value}`;
  }
  const parts = host.intlNumber(text, json);
  if (parts === undefined) throw new RangeError('Intl: the number has too many digits');
  return parts;
}

function intlDate(json, date) {
  const time = date === undefined ? coreNow() : +date;
  const parts = host.intlDate(Math.trunc(time), json);
  if (parts === undefined) throw new RangeError('Intl: the date is not valid');
  return parts;
}

// The two classes differ in how they read options and format.
function intlClass(name, read, format) {
  const C = {
    [name]: class {
      #resolved;
      #json;
      #bound = null;
      constructor(locales = undefined, options = undefined) {
        const locale = intlLocales(locales, false);
        const resolved = read(intlOptionsOf(options));
        this.#resolved = { locale, ...resolved };
        this.#json = intlStringify(resolved);
      }
      static supportedLocalesOf(locales, options = undefined) { return intlLocales(locales, true); }
      get format() {
        const json = this.#json;
        return this.#bound ??= coreDefine((value) => intlJoin(format(json, value)), 'name', { __proto__: null, value: '' });
      }
      formatToParts(value = undefined) { return intlList(format(this.#json, value)); }
      resolvedOptions() {
        const { compactRounding, ...options } = this.#resolved;
        if (options.useGrouping === 'false') options.useGrouping = false;
        const extra = name === 'NumberFormat' ? { numberingSystem: 'latn' } : { calendar: 'gregory', numberingSystem: 'latn' };
        const all = { ...options, ...extra };
        if (all.hourCycle !== undefined) all.hour12 = all.hourCycle === 'h12' || all.hourCycle === 'h11';
        for (const key of Object.keys(all)) if (all[key] === undefined) delete all[key];
        return all;
      }
    },
  }[name];
  // As the standard has it they can be called without new.
  const callable = new Proxy(C, { __proto__: null, apply: (target, self, args) => new target(...args) });
  coreDefine(C.prototype, 'constructor', { __proto__: null, value: callable });
  coreDefine(C.prototype, Symbol.toStringTag, { __proto__: null, value: `Intl.${name}`, configurable: true });
  coreDefine(C, 'length', { __proto__: null, value: 0 });
  return callable;
}

const intlObject = coreCreate(coreObjectPrototype, {
  [Symbol.toStringTag]: { value: 'Intl', configurable: true },
  NumberFormat: { value: intlClass('NumberFormat', intlNumberOptions, intlNumber), writable: true, configurable: true },
  DateTimeFormat: { value: intlClass('DateTimeFormat', (options) => intlDateOptions(options, 'any', 'date'), intlDate), writable: true, configurable: true },
});
expose('Intl', intlObject);

function intlMethod(C, name, method) {
  coreDefine(method, 'length', { __proto__: null, value: 0 });
  coreDefine(C.prototype, name, { __proto__: null, value: method, writable: true, configurable: true, enumerable: false });
}

for (const C of [Number, BigInt]) {
  const valueOf = C.prototype.valueOf;
  intlMethod(C, 'toLocaleString', {
    toLocaleString(locales = undefined, options = undefined) {
      const value = coreApply(valueOf, this, []);
      intlLocales(locales, false);
      return intlJoin(intlNumber(intlStringify(intlNumberOptions(intlOptionsOf(options))), value));
    },
  }.toLocaleString);
}

for (const [name, required, otherwise] of [['toLocaleString', 'any', 'all'], ['toLocaleDateString', 'date', 'date'], ['toLocaleTimeString', 'time', 'time']]) {
  intlMethod(Date, name, {
    [name](locales = undefined, options = undefined) {
      const time = cloneTime(this);
      if (time !== time) return 'Invalid Date';
      intlLocales(locales, false);
      return intlJoin(intlDate(intlStringify(intlDateOptions(intlOptionsOf(options), required, otherwise)), time));
    },
  }[name]);
}
