/** The server of a page: loopback only, for this machine's names only, until its signal. */
import { type IncomingHttpHeaders, request } from 'node:http'
import { expect, it } from 'vitest'
import { explorerSchema } from '../../src/explorer/model.js'
import { servePage } from '../../src/explorer/server.js'
import { encoderPage } from './data.js'

interface Answer {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

const ask = (url: string, host?: string, method = 'GET'): Promise<Answer> =>
  new Promise((done, fail) => {
    const headers = host === undefined ? {} : { host }
    const asked = request(url, { method, headers, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        text += part
      })
      response.on('end', () => done({ status: response.statusCode, headers: response.headers, text }))
    })
    asked.on('error', fail)
    asked.end()
  })

it('serves the page and its data, only to this machine, and ends with its signal', async () => {
  const cancel = new AbortController()
  const { url, closed } = await servePage(encoderPage(), 0, cancel.signal)
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/)
  const page = await ask(url)
  expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
  expect(explorerSchema.parse(JSON.parse((await ask(`${url}data.json`)).text))).toEqual(encoderPage())
  for (const tunnel of ['localhost:8000', '127.0.0.1:1', '[::1]:9', 'LOCALHOST'])
    expect((await ask(url, tunnel)).status).toBe(200)
  for (const other of ['elsewhere.example', 'localhost.example:8000', 'localhost:8000.example', 'localhost:'])
    expect((await ask(url, other)).status, other).toBe(403)
  expect((await ask(url, undefined, 'POST')).status).toBe(405)
  expect((await ask(`${url}etc`)).status).toBe(404)
  const { port } = new URL(url)
  await expect(servePage(encoderPage(), Number(port), cancel.signal)).rejects.toMatchObject({
    code: 'explore.port',
    message: expect.stringContaining(port),
    hint: expect.stringContaining('another port'),
  })
  cancel.abort()
  await closed
  await expect(ask(url)).rejects.toThrow()
})
