/** Type of the text of every error code. */

/** Meaning, usual cause and repair of a code, each a sentence or two. */
type CodeText = `${string}. | ${string}. | ${string}.`

/** Texts by code, typed by the codes alone, because TypeScript reads the type of `ErrorCode` for every import of `heddle`. */
export const texts = <Code extends string>(of: Readonly<Record<Code, CodeText>>): Readonly<Record<Code, string>> => of
