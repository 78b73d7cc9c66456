// Tests of the cards service: its answers, its log lines, and the program
// itself as a process. Run with `node --test`.
'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const readline = require('node:readline');
const { answer } = require('./api.js');
const { pick, deck } = require('./deck.js');
const { line, quoted } = require('./accesslog.js');

const combined = /^\S+ - - \[\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d \+0000\] "[A-Z]+ \S+ HTTP\/1\.\d" \d{3} \d+ "[^"]*" "[^"]*"$/;

test('answers', () => {
  for (const [method, url, status, check] of [
    ['GET', '/question', 200, (b) => b.id >= 1 && b.question],
    ['GET', '/question?id=3', 200, (b) => b.id === 3 && b.question === deck[2].question],
    ['GET', '/answer?id=100', 200, (b) => b.answer === deck[99].answer],
    ['GET', '/pick', 200, (b) => b.cards.length === 1],
    ['HEAD', '/pick?n=10', 200, (b) => new Set(b.cards.map((c) => c.id)).size === 10],
    ['GET', '/healthz', 200, (b) => b.status === 'ok'],
    ['GET', '/answer', 400, (b) => b.error.message === 'id is a number'],
    ['GET', '/answer?id=one', 400],
    ['GET', '/question?id=-1', 400],
    ['GET', '/question?id=101', 404],
    ['GET', '/answer?id=0', 404],
    ['GET', '/pick?n=0', 400],
    ['GET', '/pick?n=11', 400],
    ['GET', '/', 404],
    ['GET', '//', 400],
    ['POST', '/pick', 405],
  ]) {
    const [got, body] = answer(method, url, Math.random);
    assert.strictEqual(got, status, `${method} ${url}: ${JSON.stringify(body)}`);
    if (status >= 400) assert.strictEqual(body.error.status, status);
    if (check) assert.ok(check(body), JSON.stringify(body));
  }
});

test('a pick has different cards, and never more than there are', () => {
  const cards = pick(1000, Math.random);
  assert.strictEqual(cards.length, deck.length);
  assert.strictEqual(new Set(cards.map((c) => c.id)).size, deck.length);
});

test('log lines', () => {
  const entry = {
    client: '127.0.0.1', date: new Date(Date.UTC(2030, 10, 5, 7, 8, 9)), method: 'GET', url: '/pick?n=2',
    version: '1.1', status: 200, bytes: 42, referer: undefined, agent: 'a "b"',
  };
  assert.strictEqual(line(entry), '127.0.0.1 - - [05/Nov/2030:07:08:09 +0000] "GET /pick?n=2 HTTP/1.1" 200 42 "-" "a \\x22b\\x22"\n');
  assert.match(line(entry).trimEnd(), combined);
  assert.strictEqual(quoted('a\\b\u00e9\n'), 'a\\x5Cb\\xE9\\x0A');
});

/** Starts the program; resolves when it printed its address. */
async function start(t, ...args) {
  const child = spawn(process.execPath, [path.join(__dirname, 'server.js'), ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  const said = [];
  child.stderr.on('data', (chunk) => said.push(chunk));
  const ended = new Promise((resolve) => child.on('close', (code) => resolve({ code, said: Buffer.concat(said).toString() })));
  const first = await new Promise((resolve) => {
    readline.createInterface({ input: child.stdout }).once('line', resolve).once('close', () => resolve(undefined));
  });
  return { child, ended, url: first && JSON.parse(first).url };
}

async function until(what, check) {
  for (let i = 0; i < 200; i++) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  assert.fail(`not within 5 s: ${what}`);
}

test('a cluster serves, logs and stops', async (t) => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cards-'));
  t.after(() => fs.rmSync(dir, { recursive: true }));
  const log = path.join(dir, 'access.log');
  const { child, ended, url } = await start(t, '--workers', '2', '--access-log', log);
  for (let i = 0; i < 40; i++) {
    const response = await fetch(`${url}/pick?n=2`, { headers: { referer: 'http://page.example/' } });
    assert.strictEqual((await response.json()).cards.length, 2);
  }
  assert.strictEqual((await fetch(`${url}/nowhere`)).status, 404);
  child.kill('SIGTERM');
  const { code, said } = await ended;
  assert.strictEqual(code, 0, said);
  const lines = fs.readFileSync(log, 'utf8').trimEnd().split('\n');
  assert.strictEqual(lines.length, 41);
  for (const each of lines) assert.match(each, combined);
});

test('a request in flight finishes after SIGTERM', async (t) => {
  const { child, ended, url } = await start(t, '--workers', '1');
  const { hostname, port } = new URL(url);
  const socket = net.connect(port, hostname);
  socket.setEncoding('utf8');
  let got = '';
  socket.on('data', (chunk) => { got += chunk; });
  // Half a request is in flight when the signal comes; its rest follows.
  await new Promise((resolve) => socket.write('GET /pick HTTP/1.1\r\nHost: x\r\n', resolve));
  await until('the server answers others', async () => (await fetch(`${url}/healthz`, { headers: { connection: 'close' } })).ok);
  child.kill('SIGTERM');
  await until('the port is closed', () => new Promise((resolve) => {
    net.connect(port, hostname).on('error', () => resolve(true)).on('connect', function () { this.destroy(); resolve(false); });
  }));
  socket.write('Connection: close\r\n\r\n');
  assert.strictEqual((await ended).code, 0);
  assert.match(got, /^HTTP\/1\.1 200 OK/);
});

test('a worker that dies is replaced', async (t) => {
  const { child, ended, url } = await start(t, '--workers', '1');
  const workers = () => fs.readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  const [first] = workers();
  process.kill(Number(first), 'SIGKILL');
  await until('another worker', () => workers().length === 1 && workers()[0] !== first);
  await until('it answers', async () => { try { return (await fetch(`${url}/healthz`)).ok; } catch { return false; } });
  child.kill('SIGTERM');
  assert.strictEqual((await ended).code, 0);
});

test('keep-alive is a switch', async (t) => {
  for (const [how, header] of [['on', 'keep-alive'], ['off', 'close']]) {
    const { child, ended, url } = await start(t, '--workers', '1', '--keepalive', how);
    const response = await new Promise((resolve) => { http.get(`${url}/healthz`, { agent: new http.Agent({ keepAlive: true }) }, resolve); });
    response.resume();
    assert.strictEqual(response.headers.connection, header);
    child.kill('SIGTERM');
    assert.strictEqual((await ended).code, 0);
  }
});

test('bad starts are one sentence', async (t) => {
  const taken = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => taken.on('listening', resolve));
  t.after(() => taken.close());
  for (const [args, code, says] of [
    [['--listen', `127.0.0.1:${taken.address().port}`], 1, /is taken by another program/],
    [['--access-log', '/no/such/folder/a.log'], 1, /no such file or directory/],
    [['--listen', 'nowhere'], 2, /--listen wants HOST:PORT/],
    [['--workers', '0'], 2, /--workers is 1 to 99/],
    [['--keepalive', 'maybe'], 2, /--keepalive is on or off/],
    [['--shutdown-timeout', 'long'], 2, /--shutdown-timeout/],
    [['--speed'], 2, /--help/],
  ]) {
    const { ended, url } = await start(t, ...args);
    const result = await ended;
    assert.strictEqual(url, undefined);
    assert.strictEqual(result.code, code, result.said);
    assert.match(result.said, says);
    assert.strictEqual(result.said.split('\n').filter((l) => l.startsWith('cards:')).length, 1, result.said);
  }
});

test('--help', async () => {
  const child = spawn(process.execPath, [path.join(__dirname, 'server.js'), '--help'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const text = (await child.stdout.toArray()).join('');
  assert.match(text, /--workers/);
  assert.match(text, /--access-log/);
});
