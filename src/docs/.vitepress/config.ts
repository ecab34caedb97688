/**
 * The documents as a site of static pages: `npm run docs` builds it into `.heddle/docs`, with the API from docstrings (`api/`, which is not
 * committed). Search and fonts are local: a page loads nothing from other hosts. A broken link to a page or a heading fails the build, and so does
 * a page outside of every menu.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type DefaultTheme, defineConfig } from 'vitepress'
import { brokenAnchors } from './anchors.js'
import { linksInside } from './links.js'
import { place } from './place.js'

const pages = fileURLToPath(new URL('..', import.meta.url))
const repository = join(pages, '../..')

// Latest output of TypeDoc. A preview, which does not run TypeDoc, uses the earlier pages.
await place(join(repository, '.heddle/docs-api'), join(pages, 'api'), repository)

const titleOf = (page: string): string => {
  const [, title] = /^# (.*)$/m.exec(readFileSync(join(pages, `${page}.md`), 'utf8')) ?? []
  if (title === undefined) throw new Error(`${page}.md has no title`)
  return title.replaceAll('`', '')
}

const items = (...names: readonly string[]): DefaultTheme.SidebarItem[] =>
  names.map((page) => ({ text: titleOf(page), link: `/${page.replace(/(^|\/)index$/, '$1')}` }))

const tutorials = readdirSync(join(pages, 'tutorials'))
  .sort()
  .map((file) => `tutorials/${file.replace(/\.md$/, '')}`)

const sidebar: DefaultTheme.SidebarItem[] = [
  { text: 'Start', items: [{ text: 'Five minutes', link: '/' }, ...items('how-it-works', 'loops', 'results', 'results-llama')] },
  { text: 'Tutorials', items: items(...tutorials) },
  {
    text: 'Guides',
    items: items(
      ...[
        'write-and-check',
        'ops',
        'updates',
        'recurrences',
        'bits',
        'plans',
        'programs',
        'models',
        'llama',
        'node',
        'masks',
        'export',
        'int8-models',
        'tuning',
        'benchmark',
        'another-machine',
        'explore',
        'read-a-kernel',
        'editor',
        'debugger',
        'profilers',
        'ci',
      ].map((name) => `guides/${name}`),
      ...['from-triton', 'from-fastertransformer'].map((name) => `guides/${name}`),
    ),
  },
  {
    text: 'Reference',
    items: items(
      ...['verbs', 'environment', 'errors', 'files', 'support', 'types', 'facts', 'stability', 'kernels'].map(
        (name) => `reference/${name}`,
      ),
    ),
  },
  {
    text: 'API',
    items: items(...['', '/runtime', '/testing', '/std', '/text', '/checkpoint'].map((name) => `api/heddle${name}`)),
  },
]

/** Pages outside of every menu. */
function unnamed(): string[] {
  const named = new Set(sidebar.flatMap((group) => group.items ?? []).map(({ link = '' }) => `${link.slice(1) || 'index'}.md`))
  return readdirSync(pages, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.md') && file !== 'api/index.md' && !named.has(file),
  )
}

/**
 * Ids of headings, as links of the documents write them. A function of the API differs from a type of the same name, whose links TypeDoc numbers
 * first.
 */
function headingId(heading: string): string {
  const id = heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
  return heading.endsWith('()') ? `${id}-function` : id
}

export default defineConfig({
  title: 'heddle',
  description: 'Transformer kernels in TypeScript, compiled to CUDA and called from Node',
  lang: 'en',
  outDir: join(repository, '.heddle/docs-made'),
  cacheDir: join(repository, '.heddle/vitepress'),
  srcExclude: ['api/index.md'],
  markdown: {
    // Braces in texts of errors are plain text.
    attrs: { disable: true },
    anchor: { slugify: headingId },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config: (markdown) => {
      markdown.use(linksInside, { pages, repository })
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    nav: [
      { text: 'Start', link: '/' },
      { text: 'Tutorials', link: `/${tutorials[0]}`, activeMatch: '^/tutorials/' },
      { text: 'Guides', link: '/guides/ops', activeMatch: '^/guides/' },
      { text: 'Reference', link: '/reference/verbs', activeMatch: '^/reference/' },
      { text: 'API', link: '/api/heddle', activeMatch: '^/api/' },
      { text: 'How it works', link: '/how-it-works' },
      { text: 'Results', link: '/results' },
    ],
    sidebar,
    outline: [2, 3],
    docFooter: { prev: 'Before', next: 'Next' },
  },
  async buildEnd({ outDir, site }) {
    const wrong = [...unnamed().map((file) => `no menu names ${file}`), ...brokenAnchors(outDir, site.base)]
    if (wrong.length > 0) throw new Error(`the site is not whole:\n${wrong.join('\n')}`)
    await place(outDir, join(repository, '.heddle/docs'), repository)
  },
})
