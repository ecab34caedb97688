/** Checks inside of a page. Each function runs in the browser on its own, and returns the faults that it finds. */

/** Elements that make the page wider than the window: the widest ones outside of scrolling regions. */
export function overflowing(): string[] {
  const { scrollWidth, clientWidth } = document.documentElement
  if (scrollWidth <= clientWidth) return []
  const scrolls = (element: Element | null): boolean =>
    element !== null &&
    (['auto', 'scroll', 'hidden'].includes(getComputedStyle(element).overflowX) || scrolls(element.parentElement))
  const wide = [...document.body.querySelectorAll('*')].filter(
    (element) => element.getBoundingClientRect().right > clientWidth + 1 && !scrolls(element.parentElement),
  )
  return [
    `${scrollWidth} px in a window of ${clientWidth}`,
    ...wide.slice(0, 4).map((element) => element.outerHTML.slice(0, 120)),
  ]
}

/** Texts outside of their container: labels outside of their drawing, and contents that are cut without an ellipsis. */
export function cutTexts(): string[] {
  const found: string[] = []
  for (const text of document.querySelectorAll('svg text')) {
    const [own, drawing] = [text.getBoundingClientRect(), text.closest('svg')?.getBoundingClientRect()]
    if (drawing === undefined || text.textContent === '') continue
    const isInside =
      own.left >= drawing.left - 1 &&
      own.right <= drawing.right + 1 &&
      own.top >= drawing.top - 1 &&
      own.bottom <= drawing.bottom + 1
    if (!isInside) found.push(`outside of its drawing: ${text.textContent}`)
  }
  for (const element of document.querySelectorAll<HTMLElement>('body *')) {
    const { overflowX, overflowY, textOverflow } = getComputedStyle(element)
    const isCutAcross = overflowX === 'hidden' && textOverflow !== 'ellipsis' && element.scrollWidth > element.clientWidth + 1
    const isCutBelow = overflowY === 'hidden' && element.scrollHeight > element.clientHeight + 1
    if ((isCutAcross || isCutBelow) && element.textContent !== '') found.push(`cut: ${element.textContent?.slice(0, 80)}`)
  }
  return found
}

/** Labels of one drawing that lie on each other. */
export function overlappingTexts(): string[] {
  return [...document.querySelectorAll('.chart svg')].flatMap((drawing) => {
    const texts = [...drawing.querySelectorAll('text')].filter(({ textContent }) => textContent !== '')
    return texts.flatMap((text, i) => {
      const a = text.getBoundingClientRect()
      return texts.slice(i + 1).flatMap((other) => {
        const b = other.getBoundingClientRect()
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left)
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)
        return across > 1 && down > 3 ? [`${text.textContent} on ${other.textContent}`] : []
      })
    })
  })
}

/** Texts of the highlighted lines that match the hovered one. */
export const kin = (): string[] =>
  [...document.querySelectorAll('.line.kin')].map(({ textContent }) => (textContent ?? '').trim())
