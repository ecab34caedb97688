/** A strict reader of the HTML that the report consists of: every tag closed in order, every attribute quoted. */

export interface HtmlElement {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly children: HtmlElement[]
  /** Its own text and that of its children, with entities resolved. */
  text: string
}

const empty = new Set(['meta', 'link', 'br', 'img', 'input', 'hr'])
const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", '#x27': "'", '#x3D': '=' }

const resolved = (text: string): string =>
  text.replace(/&([^;\s]*);?/g, (whole, name: string) => {
    const character = entities[name]
    if (character === undefined) throw new Error(`not an entity: ${whole}`)
    return character
  })

function attributesOf(text: string): Record<string, string> {
  const rest = text.replace(/\s+([a-zA-Z][a-zA-Z0-9-]*)="([^"<]*)"/g, '').trim()
  if (rest !== '' && rest !== '/') throw new Error(`not attributes: ${rest}`)
  return Object.fromEntries(
    [...text.matchAll(/\s+([a-zA-Z][a-zA-Z0-9-]*)="([^"<]*)"/g)].map(([, key, of]) => [key, resolved(of ?? '')]),
  )
}

/** The root of a document. @throws for a tag that is not closed, closes nothing, or is malformed */
export function parseHtml(html: string): HtmlElement {
  const root: HtmlElement = { name: '', attributes: {}, children: [], text: '' }
  const open = [root]
  // The style sheet is not markup.
  const body = html.replace(/^<!doctype html>/, '').replace(/<style>[^<]*<\/style>/, '')
  for (const [part] of body.matchAll(/<[^>]*>|[^<]+/g)) {
    const top = open.at(-1) ?? root
    if (!part.startsWith('<')) {
      for (const element of open) element.text += resolved(part)
      continue
    }
    const closing = /^<\/([a-z0-9]+)>$/i.exec(part)
    if (closing !== null) {
      if (closing[1] !== top.name) throw new Error(`${part} closes ${top.name}`)
      open.pop()
      continue
    }
    const tag = /^<([a-z0-9]+)([^>]*)>$/i.exec(part)
    if (tag === null) throw new Error(`not a tag: ${part}`)
    const [, name = '', attributes = ''] = tag
    const element: HtmlElement = { name, attributes: attributesOf(attributes), children: [], text: '' }
    top.children.push(element)
    if (!empty.has(name) && !attributes.endsWith('/')) open.push(element)
  }
  if (open.length !== 1) throw new Error(`${open.at(-1)?.name} is not closed`)
  return root
}

/** All elements below one that fit, in the order of the document. */
export function all(element: HtmlElement, fits: (element: HtmlElement) => boolean): HtmlElement[] {
  return element.children.flatMap((child) => [...(fits(child) ? [child] : []), ...all(child, fits)])
}

/** All elements below one with a name and, if given, a class. */
export const named = (element: HtmlElement, name: string, kind?: string): HtmlElement[] =>
  all(element, (child) => child.name === name && (kind === undefined || child.attributes.class === kind))
