/**
 * Serves a page on loopback until a signal fires: of fixed data, or a live one that is told of new data by server-sent events. Requests with a
 * foreign host name are refused (DNS rebinding).
 */
import { createServer, type ServerResponse } from 'node:http'
import { environmentError } from '../errors.js'
import type { ExplorerData, LiveState } from './model.js'
import { pageHtml } from './page.js'

const host = '127.0.0.1'

export interface Served {
  /** `http://127.0.0.1:7355/` */
  readonly url: string
  /** Resolves when the server has closed, after the signal. */
  readonly closed: Promise<void>
}

/**
 * True if the host of a request is this machine, at any port, because a tunnel may use another one. A page of another site that resolves its
 * name to loopback is not.
 */
const isLocal = (name = ''): boolean => /^(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?$/i.test(name)

/** Answer to a request: a text of a type, or a stream that the site keeps open. */
type Answer = { readonly type: string; readonly text: string } | { readonly open: (response: ServerResponse) => void }

/** Answers by path. */
type Site = Readonly<Record<string, () => Answer>>

/**
 * @param port 0 takes a free one
 * @throws environment `explore.port` for a port that is not available, `explore.page` if the package is incomplete
 */
export function servePage(data: ExplorerData, port: number, signal: AbortSignal): Promise<Served> {
  const [text, json] = [pageHtml(data), JSON.stringify(data)]
  return serve(
    { '/': () => ({ type: 'text/html', text }), '/data.json': () => ({ type: 'application/json', text: json }) },
    port,
    signal,
  )
}

/** A page whose data changes. */
export interface LivePage extends Served {
  /** Replaces the data. Open pages draw it without reloading. */
  show(data: ExplorerData): void
  /** Tells open pages what is being done, or how it ended. */
  tell(state: LiveState['state'], text: string): void
}

/** @param first data until there is other. @throws as `servePage` */
export async function serveLive(first: ExplorerData, port: number, signal: AbortSignal): Promise<LivePage> {
  let data = first
  let live: LiveState = { state: 'working', text: '', version: 0 }
  const listeners = new Set<ServerResponse>()
  const current = (): ExplorerData => ({ ...data, live })
  const event = (): string => `data: ${JSON.stringify(live)}\n\n`
  const change = (next: LiveState): void => {
    live = next
    for (const response of listeners) response.write(event())
  }
  const events = (response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' })
    // A browser that lost the server asks again after this time, in ms.
    response.write(`retry: 1000\n${event()}`)
    listeners.add(response)
    response.on('close', () => listeners.delete(response))
  }
  // Fails at once if the package is incomplete.
  pageHtml(current())
  const served = await serve(
    {
      '/': () => ({ type: 'text/html', text: pageHtml(current()) }),
      '/data.json': () => ({ type: 'application/json', text: JSON.stringify(current()) }),
      '/events': () => ({ open: events }),
    },
    port,
    signal,
  )
  return {
    ...served,
    show: (next) => {
      data = next
      change({ ...live, version: live.version + 1 })
    },
    tell: (state, text) => change({ ...live, state, text }),
  }
}

async function serve(site: Site, port: number, signal: AbortSignal): Promise<Served> {
  let bound = port
  const paths = Object.keys(site)
  const server = createServer(({ method, url = '', headers }, response) => {
    const answer = (status: number, type: string, text: string): void => {
      response.writeHead(status, { 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-store' })
      response.end(method === 'HEAD' ? '' : text)
    }
    if (!isLocal(headers.host)) return answer(403, 'text/plain', 'this page is for this machine\n')
    if (method !== 'GET' && method !== 'HEAD') return answer(405, 'text/plain', 'only GET is supported\n')
    const found = Object.hasOwn(site, url) ? site[url]?.() : undefined
    if (found === undefined) return answer(404, 'text/plain', `there are ${paths.slice(0, -1).join(', ')} and ${paths.at(-1)}\n`)
    if ('text' in found) return answer(200, found.type, found.text)
    return method === 'HEAD' ? answer(200, 'text/event-stream', '') : found.open(response)
  })
  await new Promise<void>((done, fail) => {
    server.once('error', (cause) =>
      fail(
        environmentError('explore.port', `cannot listen on ${host}:${port}`, {
          hint: 'give another port, or 0 for a free one',
          cause,
        }),
      ),
    )
    server.listen(port, host, done)
  })
  const address = server.address()
  if (typeof address === 'object' && address !== null) bound = address.port
  const closed = new Promise<void>((done) => {
    server.once('close', () => done())
  })
  const end = (): void => {
    server.close()
    server.closeAllConnections()
  }
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
  return { url: `http://${host}:${bound}/`, closed }
}
