// URL, URLSearchParams and structuredClone. Addresses are taken apart by the host's parser, which computes and touches nothing.
((host) => {
  'use strict';
  const { defineProperty, getPrototypeOf, keys } = Object;
  const { parse, stringify } = JSON;
  const wellFormed = (value) => `${value}`.toWellFormed();
  let adopt;
  const give = (name, value) => defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });

  class URLSearchParams {
    #pairs = [];
    #owner = null;
    #told() {
      if (this.#owner !== null) this.#owner.search = this.toString();
    }
    // What the owner calls when its own query was changed.
    static #adopt = (params, owner, search) => {
      params.#owner = owner;
      params.#pairs = parse(host.query(search));
    };
    static {
      adopt = URLSearchParams.#adopt;
    }
    constructor(init = '') {
      if (typeof init === 'object' && init !== null) {
        if (typeof init[Symbol.iterator] === 'function') {
          for (const [name, value] of init) this.#pairs.push([wellFormed(name), wellFormed(value)]);
        } else {
          for (const name of keys(init)) this.#pairs.push([wellFormed(name), wellFormed(init[name])]);
        }
      } else {
        this.#pairs = parse(host.query(wellFormed(init)));
      }
    }
    get size() { return this.#pairs.length; }
    get(name) {
      const wanted = wellFormed(name);
      const pair = this.#pairs.find((p) => p[0] === wanted);
      return pair ? pair[1] : null;
    }
    getAll(name) {
      const wanted = wellFormed(name);
      return this.#pairs.filter((p) => p[0] === wanted).map((p) => p[1]);
    }
    has(name, value) {
      const wanted = wellFormed(name);
      return this.#pairs.some((p) => p[0] === wanted && (value === undefined || p[1] === wellFormed(value)));
    }
    append(name, value) {
      this.#pairs.push([wellFormed(name), wellFormed(value)]);
      this.#told();
    }
    delete(name, value) {
      const wanted = wellFormed(name);
      this.#pairs = this.#pairs.filter((p) => !(p[0] === wanted && (value === undefined || p[1] === wellFormed(value))));
      this.#told();
    }
    set(name, value) {
      const wanted = wellFormed(name);
      const first = this.#pairs.findIndex((p) => p[0] === wanted);
      if (first < 0) {
        this.#pairs.push([wanted, wellFormed(value)]);
      } else {
        this.#pairs[first][1] = wellFormed(value);
        this.#pairs = this.#pairs.filter((p, i) => i <= first || p[0] !== wanted);
      }
      this.#told();
    }
    sort() {
      this.#pairs.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
      this.#told();
    }
    forEach(visit, self) {
      for (const [name, value] of this.#pairs.slice()) visit.call(self, value, name, this);
    }
    *entries() { for (const [name, value] of this.#pairs.slice()) yield [name, value]; }
    *keys() { for (const [name] of this.#pairs.slice()) yield name; }
    *values() { for (const [, value] of this.#pairs.slice()) yield value; }
    [Symbol.iterator]() { return this.entries(); }
    toString() { return host.writeQuery(stringify(this.#pairs)); }
  }

  const PARTS = ['href', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash', 'origin'];
  class URL {
    #parts;
    #params = null;
    static #read(value, base) {
      return host.url(wellFormed(value), base === undefined ? undefined : wellFormed(base));
    }
    static canParse(value, base) { return URL.#read(value, base) !== undefined; }
    static parse(value, base) { return URL.canParse(value, base) ? new URL(value, base) : null; }
    constructor(value, base) {
      const read = URL.#read(value, base);
      if (read === undefined) throw new TypeError(`Invalid URL: ${wellFormed(value).slice(0, 200)}`);
      this.#parts = parse(read);
    }
    get searchParams() {
      if (this.#params === null) {
        this.#params = new URLSearchParams();
        adopt(this.#params, this, this.search);
      }
      return this.#params;
    }
    toString() { return this.#parts[0]; }
    toJSON() { return this.#parts[0]; }
    static {
      for (let i = 0; i < PARTS.length; i++) {
        const name = PARTS[i];
        defineProperty(URL.prototype, name, {
          get() { return this.#parts[i]; },
          set: name === 'origin' ? undefined : function (value) {
            const read = host.setUrl(this.#parts[0], name, wellFormed(value));
            if (read === undefined) throw new TypeError(`Invalid URL: ${wellFormed(value).slice(0, 200)}`);
            this.#parts = parse(read);
            if (this.#params !== null && (name === 'href' || name === 'search')) adopt(this.#params, this, this.search);
          },
          enumerable: true,
          configurable: true,
        });
      }
    }
  }
  give('URL', URL);
  give('URLSearchParams', URLSearchParams);

  const clone = (value, seen) => {
    if (typeof value === 'function' || typeof value === 'symbol') throw new TypeError(`a ${typeof value} cannot be cloned`);
    if (typeof value !== 'object' || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (copy) => (seen.set(value, copy), copy);
    if (value instanceof Date) return keep(new Date(value.getTime()));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof Map) {
      const copy = keep(new Map());
      for (const [k, v] of value) copy.set(clone(k, seen), clone(v, seen));
      return copy;
    }
    if (value instanceof Set) {
      const copy = keep(new Set());
      for (const v of value) copy.add(clone(v, seen));
      return copy;
    }
    if (value instanceof Error) return keep(new (getPrototypeOf(value).constructor ?? Error)(value.message));
    if (value instanceof Promise) throw new TypeError('a promise cannot be cloned');
    if (ArrayBuffer.isView(value)) return keep(value.slice());
    const copy = keep(Array.isArray(value) ? [] : {});
    for (const key of keys(value)) defineProperty(copy, key, { value: clone(value[key], seen), writable: true, enumerable: true, configurable: true });
    return copy;
  };
  give('structuredClone', { structuredClone: (value) => clone(value, new Map()) }.structuredClone);
})
