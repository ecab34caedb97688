/** Version of the package. A default import, because a JSON module has no named exports; bundling inlines it. */
import packaged from '../../package.json' with { type: 'json' }

export const version: string = packaged.version
