/** What every error code has a text of. */

/** What the code means, what usually causes it, and what to do, each a sentence or two. */
export type CodeText = `${string}. | ${string}. | ${string}.`
