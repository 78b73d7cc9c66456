// The HTTP API over the deck: /question, /answer, /pick. Node's own http
// module, no framework.
'use strict';

const http = require('node:http');
const { deck, card, pick } = require('./deck.js');

const pickMax = 10;

/** What to answer: [status, body, extra headers]. Pure but for `random`. */
function answer(method, url, random) {
  let where;
  try {
    where = new URL(url, 'http://cards');
  } catch {
    return failure(400, 'the path is no valid URL');
  }
  const endpoint = endpoints[where.pathname];
  if (!endpoint) return failure(404, 'there is no such endpoint: there are /question, /answer and /pick');
  if (method !== 'GET' && method !== 'HEAD') return failure(405, 'use GET or HEAD', { Allow: 'GET, HEAD' });
  return endpoint(where.searchParams, random);
}

function failure(status, message, headers = {}) {
  return [status, { error: { status, message } }, headers];
}

/** A whole number from `low` to `high`, or undefined. */
function number(text, low, high) {
  if (!/^\d{1,9}$/.test(text)) return undefined;
  const value = Number(text);
  return value >= low && value <= high ? value : undefined;
}

const endpoints = {
  '/healthz': () => [200, { status: 'ok' }, {}],

  // A question: the one with ?id=N, or any.
  '/question': (query, random) => {
    if (!query.has('id')) {
      const [{ id, question }] = pick(1, random);
      return [200, { id, question }, {}];
    }
    return withCard(query, ({ id, question }) => ({ id, question }));
  },

  // The answer to question ?id=N.
  '/answer': (query) => withCard(query, ({ id, answer: text }) => ({ id, answer: text })),

  // ?n=N whole cards, one if not said.
  '/pick': (query, random) => {
    const count = number(query.get('n') ?? '1', 1, pickMax);
    if (count === undefined) return failure(400, `n is a number from 1 to ${pickMax}`);
    return [200, { cards: pick(count, random) }, {}];
  },
};

function withCard(query, show) {
  const id = number(query.get('id') ?? '', 0, 999_999_999);
  if (id === undefined) return failure(400, 'id is a number');
  const found = card(id);
  return found ? [200, show(found), {}] : failure(404, `there is no card ${id}: there are 1 to ${deck.length}`);
}

/** The server; each answer is told to `log.write`. `keepAlive: false` closes each connection. */
function createServer({ log, keepAlive = true, random = Math.random, now = () => new Date() }) {
  return http.createServer((request, response) => {
    const [status, body, headers] = answer(request.method, request.url, random);
    const text = JSON.stringify(body);
    response.writeHead(status, {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(text),
      ...(keepAlive ? {} : { Connection: 'close' }),
      ...headers,
    });
    response.end(request.method === 'HEAD' ? undefined : text);
    request.resume(); // a body nobody wants must not hold the connection
    log.write({
      client: request.socket.remoteAddress ?? '-',
      date: now(),
      method: request.method,
      url: request.url,
      version: request.httpVersion,
      status,
      bytes: request.method === 'HEAD' ? 0 : Buffer.byteLength(text),
      referer: request.headers.referer,
      agent: request.headers['user-agent'],
    });
  });
}

module.exports = { answer, createServer };
