// The CPU kernels: runs as a worker, and in node for comparison. Each returns a value so that nothing can be left out.
const kernels = {
  'fib(27)': () => { const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2); return fib(27) },
  'integer loop, 10M': () => { let s = 0; for (let i = 0; i < 1e7; i++) s = (s + i) | 0; return s },
  'float loop, 3M': () => { let s = 0; for (let i = 1; i <= 3e6; i++) s += 1 / i; return s },
  'objects, 500k': () => { let last; for (let i = 0; i < 5e5; i++) last = { a: i, b: last && last.a }; return last.b },
  'property reads, 2M': () => { const o = { a: 1, b: 2, c: 3 }; let s = 0; for (let i = 0; i < 2e6; i++) s += o.a + o.b + o.c; return s },
  'regular expression': () => { const t = 'the quick brown fox 123 jumps over 456 lazy dogs '.repeat(400); let n = 0; for (const m of t.matchAll(/(\w+)\s(\d+)/g)) n += +m[2]; return n },
  'sort 100k, comparator': () => { let x = 1; const a = Array.from({ length: 1e5 }, () => x = (x * 1103515245 + 12345) & 0x7fffffff); return a.sort((p, q) => p - q)[0] },
  'string concat, 300k': () => { let s = ''; for (let i = 0; i < 3e5; i++) s += i & 7; return s.length },
  'JSON 10 KB, 100x both ways': () => { const v = Array.from({ length: 100 }, (_, i) => ({ id: i, name: 'item ' + i, tags: ['a', 'b'], price: i * 1.25 })); let n = 0; for (let i = 0; i < 100; i++) n += JSON.parse(JSON.stringify(v)).length; return n },
  'Uint8Array, 1M write + read': () => { const b = new Uint8Array(1e6); for (let i = 0; i < b.length; i++) b[i] = i; let s = 0; for (let i = 0; i < b.length; i++) s += b[i]; return s },
  'map/filter/reduce, 100k': () => Array.from({ length: 1e5 }, (_, i) => i).map(x => x * 2).filter(x => x % 3 === 0).reduce((p, x) => p + x, 0),
  'Map, 200k': () => { const m = new Map(); for (let i = 0; i < 2e5; i++) m.set('k' + (i % 5000), i); return m.size },
}

// measure runs every kernel three times and returns what each took, in order.
export function measure() {
  return Object.entries(kernels).map(([Name, run]) => {
    const times = []
    for (let i = 0; i < 3; i++) {
      const began = performance.now()
      if (run() === undefined) throw new Error(Name + ' gave nothing')
      times.push(performance.now() - began)
    }
    return { Name, MS: times }
  })
}

export default {
  async fetch() {
    return Response.json(measure())
  },
}
