// The program: flags, a cluster of workers on one port, and their end. The
// contract with whoever starts it is that of the Go services: the address as
// JSON on the first line of standard output, log lines as JSON on standard
// error, SIGTERM lets requests in flight finish, a bad start is one sentence.
'use strict';

const cluster = require('node:cluster');
const { parseArgs } = require('node:util');
const { AccessLog } = require('./accesslog.js');
const { createServer } = require('./api.js');

const help = `cards: questions and answers over HTTP, in Node.js.

Usage: node server.js [flags]

      --listen HOST:PORT      address to listen on; port 0 takes a free one, which is printed (default 127.0.0.1:0)
      --workers N             worker processes that share the port (default 2)
      --access-log FILE       append a line a request, in nginx's combined format (default: none)
      --keepalive on|off      off: each connection is closed after its answer (default on)
      --shutdown-timeout MS   how long requests in flight may take to finish after SIGTERM (default 10000)
      --help                  this text
`;

function log(level, msg, more = {}) {
  process.stderr.write(`${JSON.stringify({ time: new Date().toISOString(), level, msg, pid: process.pid, ...more })}\n`);
}

function fail(status, message) {
  process.stderr.write(`cards: ${message}\n`);
  process.exit(status);
}

/** The flags, checked. */
function settle(args) {
  let values;
  try {
    ({ values } = parseArgs({
      args,
      options: {
        listen: { type: 'string', default: '127.0.0.1:0' },
        workers: { type: 'string', default: '2' },
        'access-log': { type: 'string', default: '' },
        keepalive: { type: 'string', default: 'on' },
        'shutdown-timeout': { type: 'string', default: '10000' },
        help: { type: 'boolean', default: false },
      },
    }));
  } catch (error) {
    fail(2, `${error.message.split('\n')[0]} (see --help)`);
  }
  const address = /^(.+):(\d{1,5})$/.exec(values.listen);
  if (!address || Number(address[2]) > 65535) fail(2, `--listen wants HOST:PORT, such as 127.0.0.1:0, not "${values.listen}"`);
  if (!/^[1-9]\d?$/.test(values.workers)) fail(2, `--workers is 1 to 99, not "${values.workers}"`);
  if (!/^(on|off)$/.test(values.keepalive)) fail(2, `--keepalive is on or off, not "${values.keepalive}"`);
  if (!/^[1-9]\d{0,6}$/.test(values['shutdown-timeout'])) fail(2, `--shutdown-timeout is a number of milliseconds above 0, not "${values['shutdown-timeout']}"`);
  return {
    help: values.help,
    host: address[1].replace(/^\[(.*)\]$/, '$1'),
    port: Number(address[2]),
    workers: Number(values.workers),
    accessLog: values['access-log'],
    keepAlive: values.keepalive === 'on',
    shutdownTimeout: Number(values['shutdown-timeout']),
  };
}

/** What a failed listen or open means, in one sentence. */
function explain(error, options) {
  if (error.code === 'EADDRINUSE') {
    return `${options.host}:${options.port} is taken by another program: give another port, or port 0 for a free one`;
  }
  return error.message;
}

function runPrimary(options) {
  let stopping = false;
  let ready = 0;
  let address;
  let port = options.port;
  let failed = false;
  let respawns = 0;

  cluster.on('message', (worker, message) => {
    if (message.failed !== undefined && !failed) {
      failed = true;
      process.exitCode = 1;
      process.stderr.write(`cards: ${message.failed}\n`);
      stop('SIGKILL');
    }
  });
  cluster.on('listening', (worker, at) => {
    address ??= `${options.host.includes(':') ? `[${options.host}]` : options.host}:${at.port}`;
    port = at.port;
    ready += 1;
    if (ready === options.workers) {
      process.stdout.write(`${JSON.stringify({ service: 'cards', listen: address, url: `http://${address}`, pid: process.pid })}\n`);
      log('INFO', 'listening', { service: 'cards', address, workers: options.workers });
    }
  });
  cluster.on('exit', (worker, code, signal) => {
    if (stopping) {
      if (code !== 0 && !failed) process.exitCode = 1;
      return;
    }
    respawns += 1;
    log('ERROR', 'a worker ended', { worker: worker.process.pid, code, signal, respawns });
    if (respawns > 10) {
      process.exitCode = 1;
      stop('SIGTERM');
    } else {
      fork();
    }
  });
  // A later worker is told the port that the first was given.
  // What cannot be told to one that has ended is no news: its exit is.
  const fork = () => cluster.fork({ CARDS_PORT: port }).on('error', () => {});
  for (let i = 0; i < options.workers; i++) fork();

  function stop(signal) {
    if (stopping) return;
    stopping = true;
    log('INFO', 'stopping: requests in flight may finish', { service: 'cards' });
    for (const worker of Object.values(cluster.workers)) worker.process.kill(signal);
  }
  // The workers share our process group: an interrupt reaches them as well.
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGTERM'));
}

function runWorker(options) {
  let accessLog;
  let stopping = false;
  const giveUp = (error) => process.send({ failed: explain(error, options) }, () => {});
  try {
    accessLog = new AccessLog(options.accessLog);
  } catch (error) {
    giveUp(error);
    return;
  }
  const server = createServer({ log: accessLog, keepAlive: options.keepAlive });
  server.on('error', giveUp);
  server.listen(Number(process.env.CARDS_PORT), options.host);

  function finish(code) {
    accessLog.close();
    process.exit(code);
  }
  function stop() {
    if (stopping) return;
    stopping = true;
    server.close(() => finish(0));
    server.closeIdleConnections();
    setTimeout(() => finish(1), options.shutdownTimeout).unref();
  }
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  process.on('disconnect', stop); // the primary is gone
}

const options = settle(process.argv.slice(2));
if (options.help) {
  process.stdout.write(help);
} else if (cluster.isPrimary) {
  runPrimary(options);
} else {
  runWorker(options);
}
