/**
 * The activations of an encoder layer that INT8 execution quantises: graph inputs or nodes of `specs/graphs/encoder_layer.ts`, in the
 * order of FasterTransformer v3.0's list of maxima. Each is quantised symmetrically with one number, the magnitude that maps to 127.
 */

/** Sites, and the row view in which each is observed: views keep tensors of counts small and give the device several rows. */
export const siteRows = {
  /** The layer's input. */
  x: 'b*h s*d',
  queryBias: 'b*h s*d',
  keyBias: 'b*h s*d',
  valueBias: 'b*h s*d',
  probabilities: 'b*h s*s',
  /** Concatenated outputs of the heads, the projection's input. */
  merged: 'b*h s*d',
  attentionNorm: 'b*h s*d',
  fc1Activation: 'b s*i',
  /** The layer's output, which is the next layer's `x`, in post-norm layers; the input of the feed-forward network in pre-norm layers. */
  outputNorm: 'b*h s*d',
} as const

export type Site = keyof typeof siteRows

export const sites = Object.keys(siteRows) as readonly Site[]

/** One value per site of a layer. */
export type PerSite<T> = Readonly<Record<Site, T>>

/** Computes a value per site. */
export const perSite = <T>(of: (site: Site) => T): PerSite<T> =>
  Object.fromEntries(sites.map((site) => [site, of(site)])) as Record<Site, T>
