// An ordinary Node.js service: `GET /` builds ITEMS objects, and sends them as JSON. One thread's
// CPU time limits it.
//
// Not here: how it is started and measured (../lib/rows_services.py).
'use strict'
const http = require('http')
const count = Number(process.env.ITEMS)

http.createServer((request, response) => {
  const items = []
  for (let i = 0; i < count; i++) items.push({ id: i, name: `item ${i}`, price: (i * 7919) % 1000 / 100 })
  items.sort((a, b) => a.price - b.price || a.name.localeCompare(b.name))
  response.setHeader('Content-Type', 'application/json')
  response.end(JSON.stringify(items.slice(0, 20)))
}).listen(Number(process.env.PORT), '127.0.0.1')
