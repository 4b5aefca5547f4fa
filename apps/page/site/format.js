// format.js -- numbers, times and sizes as words.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export function bytes(count) {
  let unit = 0;
  while (count >= 1024 && unit + 1 < UNITS.length) {
    count /= 1024;
    unit += 1;
  }
  return `${unit && count < 10 ? count.toFixed(1) : Math.round(count)} ${UNITS[unit]}`;
}

export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '-';
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString('en');
  if (size >= 100 || Number.isInteger(value)) return String(Math.round(value));
  if (size >= 0.01) return String(Number(value.toPrecision(3)));
  return value.toExponential(1);
}

/// "4 s", "3 min 20 s", "2 h 5 min", "3 d 4 h".
export function duration(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s >= 600 && s < 3600) return `${Math.round(s / 60)} min`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

export const clock = (unixMs) =>
  new Date(unixMs).toLocaleTimeString('en-GB', {hour12: false});

export const age = (unixMs) =>
  unixMs ? `${duration((Date.now() - unixMs) / 1000)} ago` : '-';
