// Writes a program's result as JSON text. What JSON cannot say stands there as a placeholder whose path is listed; nothing that
// a value does while it is read, getters and toJSON included, makes this fail. Only too large a value does. It keeps its own
// stack, so that how deep a value may be does not depend on how deep the engine may recurse.
((limit, describe) => {
  'use strict';
  const { stringify } = JSON;
  const { create, keys } = Object;
  const { isArray } = Array;
  const { isView } = ArrayBuffer;
  const DEPTH = 100;
  const LISTED = 100;
  const TOO_LARGE = {};

  const unboxed = (value) => {
    for (const kind of [Number, String, Boolean, BigInt]) {
      if (value instanceof kind) return kind.prototype.valueOf.call(value);
    }
    return value;
  };
  const below = (path, key) => {
    if (typeof key === 'number') return `${path}[${key}]`;
    const name = key.toWellFormed().slice(0, 200);
    return path === '' ? name : `${path}.${name}`;
  };

  const walk = (root) => {
    const replaced = [];
    const above = new Set();
    const levels = [];
    let size = 0;
    const grow = (by) => {
      size += by;
      if (size > limit) throw TOO_LARGE;
    };
    const replace = (path, text) => {
      if (replaced.length < LISTED) replaced.push(path);
      else if (replaced.length === LISTED) replaced.push('…');
      grow(text.length + 2);
      return text;
    };

    // A list or an object goes on a level of its own, to be filled in later; everything else is written at once.
    const open = (value, path, names, members, out) => {
      levels.push({ value, path, names, members, out, at: 0 });
      above.add(value);
      return out;
    };
    const list = (value, path, members) => open(value, path, null, members, []);
    const portray = (value, path, key) => {
      grow(2);
      if (typeof value === 'object' && value !== null) {
        if (typeof value.toJSON === 'function') value = value.toJSON(String(key));
        if (typeof value === 'object' && value !== null) value = unboxed(value);
      }
      switch (typeof value) {
        case 'string':
          grow(value.length);
          return value;
        case 'number':
          return Number.isFinite(value) ? value : replace(path, String(value));
        case 'boolean':
        case 'undefined':
          return value;
        case 'bigint':
          return replace(path, String(value));
        case 'symbol':
          return replace(path, '[Symbol]');
        case 'function':
          return replace(path, '[Function]');
      }
      if (value === null) return null;
      if (above.has(value)) return replace(path, '[Circular]');
      if (value instanceof Error) return replace(path, describe(value));
      if (value instanceof Promise) return replace(path, '[Promise]');
      if (value instanceof RegExp) return replace(path, String(value));
      if (value instanceof WeakMap || value instanceof WeakSet) return replace(path, '[Weak collection]');
      if (value instanceof ArrayBuffer || value instanceof DataView) return replace(path, '[Bytes]');
      if (levels.length >= DEPTH) return replace(path, '[Too deep]');
      if (isArray(value)) return list(value, path, value);
      // The contents of a collection are kept; that it was one is what is lost.
      const kept = value instanceof Map ? [...Map.prototype.entries.call(value)] : value instanceof Set ? [...Set.prototype.values.call(value)] : isView(value) ? value : null;
      if (kept !== null) {
        replace(path, '');
        return list(value, path, kept);
      }
      return open(value, path, keys(value), value, create(null));
    };
    const guarded = (path, read) => {
      const { length } = levels;
      try {
        return read();
      } catch (error) {
        if (error === TOO_LARGE) throw error;
        levels.length = length;
        return replace(path, `[Threw ${describe(error)}]`);
      }
    };

    const value = guarded('', () => portray(root, '', ''));
    while (levels.length > 0) {
      const level = levels[levels.length - 1];
      const { names, members, out } = level;
      if (level.at >= (names ?? members).length) {
        above.delete(level.value);
        levels.pop();
        continue;
      }
      const key = names === null ? level.at : names[level.at];
      level.at += 1;
      const path = below(level.path, key);
      const item = guarded(path, () => portray(members[key], path, key));
      if (names === null) {
        if (item === undefined) replace(path, '');
        out.push(item === undefined ? null : item);
      } else if (item !== undefined) {
        grow(key.length + 4);
        out[key] = item;
      }
    }
    return stringify({ value, replaced });
  };

  // undefined for a value that is too large.
  return (root) => {
    try {
      return walk(root);
    } catch (error) {
      if (error === TOO_LARGE) return undefined;
      throw error;
    }
  };
})
