/**
 * The activations of an encoder layer that INT8 execution quantises: graph inputs or nodes of `specs/graphs/encoder_layer.ts`, in the
 * order of FasterTransformer v3.0's list of maxima. Each is quantised symmetrically with one number, the magnitude that becomes 127.
 */

/** The sites, and the rows in which each is observed: views that keep tensors of counts small and give a device several rows. */
export const siteRows = {
  /** The layer's input. */
  x: 'b*h s*d',
  queryBias: 'b*h s*d',
  keyBias: 'b*h s*d',
  valueBias: 'b*h s*d',
  probabilities: 'b*h s*s',
  /** The heads' outputs side by side: what the projection reads. */
  merged: 'b*h s*d',
  attentionNorm: 'b*h s*d',
  fc1Activation: 'b s*i',
  /** Where norms stand behind, the layer's output, which is the next layer's `x`; else what the inner network reads. */
  outputNorm: 'b*h s*d',
} as const

export type Site = keyof typeof siteRows

export const sites = Object.keys(siteRows) as readonly Site[]

/** One value for each site of a layer. */
export type PerSite<T> = Readonly<Record<Site, T>>

/** A value for each site. */
export const perSite = <T>(of: (site: Site) => T): PerSite<T> =>
  Object.fromEntries(sites.map((site) => [site, of(site)])) as Record<Site, T>
