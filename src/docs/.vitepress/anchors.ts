/** Links to headings, checked against the built pages: VitePress itself checks only pages. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/** @param site folder of the built pages @returns one line per link to a heading that its page does not have, once per page */
export function brokenAnchors(site: string, base = '/'): string[] {
  const files = readdirSync(site, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.html'))
    .sort()
  const texts = new Map(files.map((file) => [join(site, file), readFileSync(join(site, file), 'utf8')]))
  return [...texts].flatMap(([file, text]) => {
    const links = new Set([...text.matchAll(/href="([^":]*)#([^"]+)"/g)].map(([, path = '', id = '']) => `${path}#${id}`))
    return [...links].flatMap((link) => {
      const [path = '', id = ''] = link.split('#')
      const to = path.startsWith(base) ? join(site, path.slice(base.length)) : join(dirname(file), path)
      const page = path === '' ? file : path.endsWith('/') ? join(to, 'index.html') : to
      const found = texts.get(page) ?? (existsSync(page) ? undefined : '')
      const there = found === undefined || found.includes(`id="${decodeURIComponent(id)}"`)
      return there ? [] : [`${relative(site, file)} links to ${link}, which is not there`]
    })
  })
}
