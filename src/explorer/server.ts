/** Serves a page on loopback until a signal fires. Requests with a foreign host name are refused (DNS rebinding). */
import { createServer } from 'node:http'
import { environmentError } from '../errors.js'
import type { ExplorerData } from './model.js'
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

/**
 * @param port 0 takes a free one
 * @throws environment `explore.port` for a port that is not available, `explore.page` if the package is incomplete
 */
export async function servePage(data: ExplorerData, port: number, signal: AbortSignal): Promise<Served> {
  const html = pageHtml(data)
  const json = JSON.stringify(data)
  let bound = port
  const server = createServer(({ method, url, headers }, response) => {
    const answer = (status: number, type: string, text: string): void => {
      response.writeHead(status, { 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-store' })
      response.end(method === 'HEAD' ? '' : text)
    }
    if (!isLocal(headers.host)) return answer(403, 'text/plain', 'this page is for this machine\n')
    if (method !== 'GET' && method !== 'HEAD') return answer(405, 'text/plain', 'only GET is supported\n')
    if (url === '/') return answer(200, 'text/html', html)
    if (url === '/data.json') return answer(200, 'application/json', json)
    return answer(404, 'text/plain', 'there are / and /data.json\n')
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
