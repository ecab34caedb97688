/** The server of a live page: events in order, data that changes, and the policy by which the page may ask its own server alone. */
import { get, request } from 'node:http'
import { afterEach, expect, it, vi } from 'vitest'
import { explorerSchema, type LiveState } from '../../src/explorer/model.js'
import { pageHtml } from '../../src/explorer/page.js'
import { type LivePage, serveLive } from '../../src/explorer/server.js'
import { encoderPage, graphPage } from './data.js'

const cancel = new AbortController()
afterEach(() => cancel.abort())

/** Events of a page as they arrive, and the type of the stream. */
function listen({ url }: LivePage): { readonly events: LiveState[]; readonly ended: Promise<void>; type: string | undefined } {
  const heard: { events: LiveState[]; ended: Promise<void>; type: string | undefined } = {
    events: [],
    ended: Promise.resolve(),
    type: undefined,
  }
  heard.ended = new Promise((done) => {
    get(`${url}events`, { agent: false }, (response) => {
      heard.type = response.headers['content-type']
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        text += part
        const whole = text.split('\n\n')
        text = whole.pop() ?? ''
        for (const event of whole) heard.events.push(JSON.parse(/^data: (.*)$/m.exec(event)?.[1] ?? ''))
      })
      response.on('close', done)
    }).on('error', () => done())
  })
  return heard
}

const statusOf = (url: string, headers: Readonly<Record<string, string>>): Promise<number | undefined> =>
  new Promise((done) => {
    request(url, { headers, agent: false }, (response) => {
      response.destroy()
      done(response.statusCode)
    }).end()
  })

it('tells open pages of states and data, and ends with its signal', async () => {
  const page = await serveLive(encoderPage(), 0, cancel.signal)
  const [first, second] = [listen(page), listen(page)]
  await vi.waitFor(() => expect([first.events.length, second.events.length]).toEqual([1, 1]))
  expect(first.type).toBe('text/event-stream; charset=utf-8')
  page.tell('working', 'checking')
  page.show(graphPage())
  page.tell('failed', 'two\nlines')
  await vi.waitFor(() => expect(second.events).toHaveLength(4))
  expect(first.events).toEqual([
    { state: 'working', text: '', version: 0 },
    { state: 'working', text: 'checking', version: 0 },
    { state: 'working', text: 'checking', version: 1 },
    { state: 'failed', text: 'two\nlines', version: 1 },
  ])
  const data: unknown = await (await fetch(`${page.url}data.json`)).json()
  expect(explorerSchema.parse(data)).toEqual({ ...graphPage(), live: first.events[3] })
  // A page that is opened later has the state and the data in it.
  expect(await (await fetch(page.url)).text()).toContain('"text":"two\\nlines"')
  for (const path of ['', 'data.json', 'events'])
    expect(await statusOf(`${page.url}${path}`, { host: 'elsewhere.example' })).toBe(403)
  expect(await statusOf(`${page.url}constructor`, {})).toBe(404)
  cancel.abort()
  await Promise.all([page.closed, first.ended, second.ended])
})

it('only a live page may ask a server, and only its own', () => {
  const policyOf = (html: string): string | undefined => /content="(default-src[^"]*)"/.exec(html)?.[1]
  const live = { state: 'ready', text: '', version: 1 } as const
  expect(policyOf(pageHtml({ ...graphPage(), live }))).toMatch(/^default-src 'none'; .*; connect-src 'self'$/)
  expect(policyOf(pageHtml(graphPage()))).not.toContain('connect-src')
})
