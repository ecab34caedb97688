/** Links from the documents to sources in the repository, which are not on the site: their text stays, the link does not. */
import { existsSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { MarkdownRenderer } from 'vitepress'

interface Places {
  readonly pages: string
  readonly repository: string
}

/** A plugin of markdown-it; throws for a link to a missing file. */
export function linksInside(markdown: MarkdownRenderer, { pages, repository }: Places): void {
  markdown.core.ruler.push('links-inside', ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' ? (token.attrGet('href') ?? '') : ''
      if (!href.startsWith('.')) continue
      const [path = ''] = href.split('#')
      const target = join(dirname(join(pages, env.relativePath)), path)
      if (!relative(pages, target).startsWith('..')) continue
      if (!existsSync(target)) throw new Error(`${env.relativePath}: there is no ${href}`)
      token.tag = 'span'
      token.attrs = [['title', `${relative(repository, target)} of the repository`]]
      const list = tokens.flatMap(({ children }) => children ?? [])
      const close = list.slice(list.indexOf(token)).find(({ type }) => type === 'link_close')
      if (close !== undefined) close.tag = 'span'
      // A separate name: the renderer of links checks their targets.
      token.type = 'span_open'
    }
  })
}
