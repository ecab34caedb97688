/**
 * The digest of the manifest that ships beside this code, which `rolldown.config.ts` puts in the place of this module: a manifest that is known to the
 * last bit need not be read by its schema, which takes longer than all else of a start. Undefined where the code runs unbundled.
 */
export const shippedManifest: string | undefined = undefined
