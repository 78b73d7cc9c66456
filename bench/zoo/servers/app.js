// An HTTP server with one planted limit, chosen by the settings in $ZOO (JSON); the same words as those of go/main.go, and
// `workers` for processes of its cluster. It prints its address.
'use strict'
const cluster = require('cluster')
const http = require('http')
const net = require('net')
const set = JSON.parse(process.env.ZOO || '{}')

// Work, not time: who has to wait for a core needs as much of it afterwards.
let sink = 0
function turns (count) {
  let x = sink | 1
  for (let i = 0; i < count; i++) x = (Math.imul(x, 1664525) + 1013904223) | 0
  sink = x
}
let perUs = 0
if (set.cpu_us) {
  // The fastest of many short stretches: nobody was in between.
  for (let i = 0; i < 200; i++) {
    const from = process.hrtime.bigint()
    turns(100000)
    perUs = Math.max(perUs, 100000 / (Number(process.hrtime.bigint() - from) / 1000))
  }
}
const began = Date.now()
function burn (us) {
  // For so long, in s, a request costs five times as much.
  const times = Date.now() - began < (set.warm_s || 0) * 1000 ? 5 : 1
  turns(us * times * perUs)
}

// So many may be inside at a time; the others wait in a line.
let inside = 0
const line = []
function enter (then) {
  if (!set.slots || inside < set.slots) { inside++; then() } else line.push(then)
}
function leave () {
  inside--
  const next = line.shift()
  if (next) { inside++; next() }
}

const idle = []
let links = 0
const waiting = []
function withLink (then) {
  const link = idle.pop()
  if (link) return then(link)
  if (links < set.conns) {
    links++
    const [host, port] = set.store.split(':')
    const fresh = net.connect({ host, port: Number(port), noDelay: true })
    fresh.on('data', () => { const done = fresh.done; fresh.done = null; giveBack(fresh); if (done) done() })
    fresh.on('error', () => process.exit(1))
    return then(fresh)
  }
  waiting.push(then)
}
function giveBack (link) {
  const next = waiting.shift()
  if (next) next(link)
  else idle.push(link)
}

const body = Buffer.alloc(Math.max(set.bytes || 2, 2), 'x')
const kept = []
for (let i = 0; i < (set.live || 0) * 4096; i++) kept.push({ i, text: 'object ' + i, list: [i, i + 1] })

function serve () {
  const server = http.createServer((request, response) => {
    if (!request.url.startsWith('/items')) { response.statusCode = 404; return response.end('no') }
    enter(() => {
      if (set.cpu_us) burn(set.cpu_us)
      const garbage = []
      for (let i = 0; i < (set.garbage || 0) * 8; i++) garbage.push({ i, next: garbage[i - 1] })
      const end = () => { leave(); response.end(body) }
      if (set.store) {
        withLink(link => { link.done = end; link.write(set.call + '\r\n') })
      } else if (set.sleep_us) setTimeout(end, set.sleep_us / 1000)
      else end()
    })
  })
  server.listen(Number(process.env.ZOO_PORT || 0), '127.0.0.1', () => {
    const { address, port } = server.address()
    if (cluster.isPrimary) console.log(`${address}:${port}`)
    else process.send(`${address}:${port}`)
  })
}

if (set.workers && cluster.isPrimary) {
  let told = false
  for (let i = 0; i < set.workers; i++) cluster.fork()
  cluster.on('message', (_, address) => { if (!told) console.log(address); told = true })
} else serve()
