/**
 * Digest of the manifest that ships with this code; `rolldown.config.ts` replaces this module. A manifest with this digest needs no validation by
 * its schema, which would take longer than the rest of a start. Undefined if the code runs unbundled.
 */
export const shippedManifest: string | undefined = undefined
