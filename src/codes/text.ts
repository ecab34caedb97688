/** What every error code has a text of. */

/** What the code means, what usually causes it, and what to do, each a sentence or two. */
type CodeText = `${string}. | ${string}. | ${string}.`

/** Texts by their codes, typed by the codes alone: whoever imports `heddle` has TypeScript read the type of `ErrorCode`. */
export const texts = <Code extends string>(of: Readonly<Record<Code, CodeText>>): Readonly<Record<Code, string>> => of
