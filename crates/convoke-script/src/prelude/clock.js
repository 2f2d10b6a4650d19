// Dates without a clock and without a place: what needs the time of day or chance throws, and local time is UTC. The engine's
// own local-time functions are never called, because they would ask the system for its time zone.
(() => {
  'use strict';
  const Native = Date;
  const proto = Native.prototype;
  const { defineProperty, getOwnPropertyDescriptor } = Object;
  const { construct, apply } = Reflect;
  const nativeParse = Native.parse;
  const getTime = proto.getTime;
  const toUTCString = proto.toUTCString;

  const noClock = (what) => {
    throw new Error(`${what} is not available in a workflow program: it would differ when the run is resumed; pass timestamps in through args`);
  };
  const method = (target, name, value) => defineProperty(target, name, { value, writable: true, enumerable: false, configurable: true });

  const zone = /(?:Z|UTC?|GMT|[ECMP][SD]T|[+-]\d{1,2}:?\d{0,2})\s*(?:\([^)]*\))?\s*$/i;
  const dateOnly = /^\s*[+-]?\d{4,6}(?:-\d\d){0,2}\s*$/;
  const isoTime = /^\s*[+-]?\d{4,6}(?:-\d\d){0,2}T[\d:.,]+\s*$/;
  const parse = (value) => {
    const text = `${value}`;
    if (dateOnly.test(text)) return nativeParse(text);
    if (isoTime.test(text)) return nativeParse(text.trim() + 'Z');
    // A trailing number such as the day in "2024-01-02" looks like an offset, so an offset counts only behind a time of day.
    if (/\d:\d/.test(text) ? zone.test(text) : /(?:Z|UTC?|GMT)\s*$/i.test(text)) return nativeParse(text);
    return nativeParse(text + ' UTC');
  };
  const timeOf = (value) => {
    if (typeof value === 'object' && value !== null) {
      try {
        return apply(getTime, value, []);
      } catch {
        value = value[Symbol.toPrimitive] ? value[Symbol.toPrimitive]('default') : `${value}`;
      }
    }
    return typeof value === 'string' ? parse(value) : Number(value);
  };

  function Clockless(...parts) {
    if (new.target === undefined) noClock('Date()');
    if (parts.length === 0) noClock('new Date()');
    const time = parts.length === 1 ? timeOf(parts[0]) : Native.UTC(...parts);
    return construct(Native, [time], new.target);
  }
  defineProperty(Clockless, 'name', { value: 'Date' });
  defineProperty(Clockless, 'length', { value: 7 });
  defineProperty(Clockless, 'prototype', { value: proto, writable: false });
  method(Clockless, 'UTC', Native.UTC);
  method(Clockless, 'parse', (text) => parse(text));
  method(Clockless, 'now', () => noClock('Date.now()'));
  method(proto, 'constructor', Clockless);
  method(globalThis, 'Date', Clockless);
  method(Math, 'random', () => {
    throw new Error('Math.random() is not available in a workflow program: it would differ when the run is resumed; vary by index instead');
  });

  for (const part of ['FullYear', 'Month', 'Date', 'Day', 'Hours', 'Minutes', 'Seconds', 'Milliseconds']) {
    method(proto, 'get' + part, proto['getUTC' + part]);
    if (part !== 'Day') method(proto, 'set' + part, proto['setUTC' + part]);
  }
  const getYear = proto.getUTCFullYear;
  method(proto, 'getYear', function getYear_() {
    return apply(getYear, this, []) - 1900;
  });
  delete proto.setYear;
  method(proto, 'getTimezoneOffset', function getTimezoneOffset() {
    return apply(getTime, this, []) * 0;
  });

  // "Tue, 02 Jan 2024 10:00:00 GMT" in its six pieces; none for a date that is no date.
  const pieces = (date) => {
    const found = /^(\w+), (\d+) (\w+) (-?\d+) ([\d:]+) GMT$/.exec(apply(toUTCString, date, []));
    return found && { day: found[1], date: found[2], month: found[3], year: found[4], time: found[5] };
  };
  const format = (name, write) =>
    method(proto, name, { [name]() { const p = pieces(this); return p ? write(p, this) : 'Invalid Date'; } }[name]);
  const dateText = (p) => `${p.day} ${p.month} ${p.date} ${p.year}`;
  const timeText = (p) => `${p.time} GMT+0000 (UTC)`;
  const shortDate = (p, date) => `${date.getUTCMonth() + 1}/${+p.date}/${+p.year}`;
  const shortTime = (p, date) => `${date.getUTCHours() % 12 || 12}${p.time.slice(2)} ${date.getUTCHours() < 12 ? 'AM' : 'PM'}`;
  format('toString', (p) => `${dateText(p)} ${timeText(p)}`);
  format('toDateString', dateText);
  format('toTimeString', timeText);
  format('toLocaleString', (p, date) => `${shortDate(p, date)}, ${shortTime(p, date)}`);
  format('toLocaleDateString', shortDate);
  format('toLocaleTimeString', shortTime);
  if (getOwnPropertyDescriptor(proto, 'toGMTString')) method(proto, 'toGMTString', toUTCString);
})
