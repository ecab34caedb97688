/**
 * Stand-in of npm's registry on loopback: it publishes folders, and serves what else is asked for from the packages that the repository has
 * installed. npm installs from it without a network and with an empty cache.
 */
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { create } from 'tar'

interface Published {
  readonly name: string
  readonly version: string
}

export interface Registry {
  readonly url: string
  /** Names of packages whose archives were fetched, in order. */
  readonly fetched: readonly string[]
  close(): Promise<void>
}

const manifestIn = (folder: string): Published => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

/** Folders of a repository's installed packages by name; several where they differ in version. */
function installedIn(repository: string): ReadonlyMap<string, readonly string[]> {
  const { packages } = JSON.parse(readFileSync(join(repository, 'package-lock.json'), 'utf8'))
  const folders = new Map<string, string[]>()
  for (const place of Object.keys(packages)) {
    const [, name] = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(place) ?? []
    if (name !== undefined && existsSync(join(repository, place)))
      folders.set(name, [...(folders.get(name) ?? []), join(repository, place)])
  }
  return folders
}

/** Archive of a package as npm makes it: everything below `package/`, without its own installed packages. */
const archiveOf = (folder: string) =>
  create(
    {
      cwd: folder,
      prefix: 'package',
      gzip: { level: 1 },
      portable: true,
      filter: (path) => !/^(\.\/)?node_modules(\/|$)/.test(path),
    },
    ['.'],
  )

/**
 * @param folders of packages to publish
 * @param repository root whose `package-lock.json` lists further packages; none by default
 */
export async function openRegistry(folders: readonly string[], repository?: string): Promise<Registry> {
  const published = new Map(repository === undefined ? [] : installedIn(repository))
  for (const folder of folders) published.set(manifestIn(folder).name, [folder])
  const fetched: string[] = []
  let url = ''
  /** Versions of a package with their manifests and archives' addresses. */
  const described = (name: string, found: readonly string[]) => {
    const versions = Object.fromEntries(
      found.map((folder) => {
        const manifest = manifestIn(folder)
        return [manifest.version, { ...manifest, dist: { tarball: `${url}${name}/-/${manifest.version}.tgz` } }]
      }),
    )
    return { name, 'dist-tags': { latest: Object.keys(versions).at(-1) }, versions }
  }
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '').slice(1)
    const [name = '', file] = path.split('/-/')
    const found = published.get(name)
    const folder = found?.find((each) => `${manifestIn(each).version}.tgz` === file)
    if (found !== undefined && file === undefined) {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(described(name, found)))
    } else if (folder !== undefined) {
      fetched.push(name)
      archiveOf(folder).pipe(response)
    } else response.writeHead(404).end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('expected a port')
  url = `http://127.0.0.1:${address.port}/`
  return {
    url,
    fetched,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
