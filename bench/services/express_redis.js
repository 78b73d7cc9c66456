// An ordinary Express service: `GET /` runs a script in Redis over a pool of two connections.
// PORT, REDIS_PORT; LOOPS decides what a request costs in Redis.
//
// Not here: how it is started and measured (../lib/rows_services.py).
'use strict'
const express = require('express')
const { createClient } = require('redis')
const SCRIPT = 'local sum = 0 for i = 1, tonumber(ARGV[1]) do sum = sum + i end return redis.call("INCR", "seen")'
const CONNECTIONS = 2

async function main () {
  const idle = []
  for (let i = 0; i < CONNECTIONS; i++) {
    const client = createClient({ url: `redis://127.0.0.1:${process.env.REDIS_PORT}` })
    await client.connect()
    idle.push(client)
  }
  const waiting = []
  const acquire = () => idle.length ? Promise.resolve(idle.pop()) : new Promise(resolve => waiting.push(resolve))
  const release = client => waiting.length ? waiting.shift()(client) : idle.push(client)
  const app = express()
  app.get('/', async (request, response) => {
    const client = await acquire()
    try {
      response.json({ seen: Number(await client.eval(SCRIPT, { arguments: [process.env.LOOPS] })) })
    } finally {
      release(client)
    }
  })
  app.listen(Number(process.env.PORT), '127.0.0.1')
}
main()
