// The access log, in nginx's combined format:
//   client - - [21/Nov/2030:10:25:16 +0000] "GET /pick HTTP/1.1" 200 123 "referer" "agent"
// Lines are gathered and appended in one write a moment later. Each write is of
// whole lines to a file opened for appending, so several workers can share it.
'use strict';

const fs = require('node:fs');

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const two = (n) => String(n).padStart(2, '0');

/** A date as the log has it, in UTC. */
function stamp(date) {
  return `${two(date.getUTCDate())}/${months[date.getUTCMonth()]}/${date.getUTCFullYear()}`
    + `:${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())} +0000`;
}

/** A header's value as nginx writes it: quotes, backslashes and control bytes as \xHH, nothing as -. */
function quoted(value) {
  if (value === undefined || value === '') return '-';
  return value.replace(/["\\\x00-\x1f\x7f-\uffff]/g, (c) =>
    [...Buffer.from(c, 'latin1')].map((b) => `\\x${b.toString(16).toUpperCase().padStart(2, '0')}`).join(''));
}

/** One line, with its end. */
function line({ client, date, method, url, version, status, bytes, referer, agent }) {
  return `${client} - - [${stamp(date)}] "${method} ${quoted(url)} HTTP/${version}" ${status} ${bytes} "${quoted(referer)}" "${quoted(agent)}"\n`;
}

/** An open log. Without a path, `write` does nothing. */
class AccessLog {
  #file;
  #lines = [];
  #timer;

  constructor(path) {
    if (path) this.#file = fs.openSync(path, 'a');
  }

  write(entry) {
    if (this.#file === undefined) return;
    this.#lines.push(line(entry));
    this.#timer ??= setTimeout(() => this.flush(), 50);
  }

  flush() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#lines.length === 0) return;
    const text = this.#lines.join('');
    this.#lines = [];
    fs.writeSync(this.#file, text);
  }

  close() {
    if (this.#file === undefined) return;
    this.flush();
    fs.closeSync(this.#file);
    this.#file = undefined;
  }
}

module.exports = { AccessLog, line, quoted, stamp };
