/** Libraries built here load with an old glibc; without its stand-ins they would not. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { nativeFolder } from '../../src/runtime/addon.js'
import { compareVersions, glibcNeed, oldestGlibc } from '../../src/toolchain/glibc.js'
import { recipeFor } from '../../src/toolchain/recipe.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const dir = mkdtempSync(join(tmpdir(), 'heddle-glibc-'))
afterAll(() => rmSync(dir, { recursive: true }))

/** A library that throws, starts threads and loads others; it is run when it is loaded. */
const source = `
#include <dlfcn.h>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
static int run() {
  int caught = 0;
  std::thread thread([&] {
    try {
      throw std::runtime_error(std::to_string(std::random_device()()));
    } catch (const std::exception&) {
      caught = 1;
    }
  });
  thread.join();
  return dlopen(nullptr, RTLD_NOW) != nullptr ? caught : 2;
}
extern "C" {
__attribute__((visibility("default"))) int result = run();
}
`

async function link(name: string, portable: boolean): Promise<string> {
  const { compiler, linkFlags, portable: shim } = await recipeFor('simt', root)
  const [text, path] = [join(dir, 'probe.cpp'), join(dir, name)]
  writeFileSync(text, source)
  execFileSync(compiler.path, [
    '-std=c++17',
    '-fPIC',
    '-Wall',
    '-Wextra',
    '-Werror',
    ...linkFlags,
    text,
    ...(portable ? shim : []),
    '-o',
    path,
  ])
  return path
}

describe('the oldest glibc', () => {
  it.each(['heddle.node', 'libheddle_simt.so'])('loads %s', async (name) => {
    const { version, symbols } = await glibcNeed(join(nativeFolder(), name))
    expect(compareVersions(version, oldestGlibc), `${version}: ${symbols.join(', ')}`).toBeLessThanOrEqual(0)
  })

  it('are replaced by stand-ins if this machine has newer ones, and libraries linked in this way work', async () => {
    const path = await link('portable.so', true)
    expect(compareVersions((await glibcNeed(path)).version, oldestGlibc)).toBeLessThanOrEqual(0)
    const load = join(dir, 'load.cpp')
    writeFileSync(
      load,
      `#include <dlfcn.h>\nint main(int, char** argv) { void* l = dlopen(argv[1], RTLD_NOW); return l == nullptr ? 9 : *static_cast<int*>(dlsym(l, "result")); }\n`,
    )
    execFileSync(process.env.CXX ?? 'c++', [load, '-o', join(dir, 'load'), '-ldl'])
    let code = 0
    try {
      execFileSync(join(dir, 'load'), [path])
    } catch (error) {
      code = Number((error as { status?: number }).status)
    }
    expect(code).toBe(1)
    // The twin: without the stand-ins it needs this machine's symbols, if these are newer than 2.33.
    const here = execFileSync('getconf', ['GNU_LIBC_VERSION'], { encoding: 'utf8' }).split(' ')[1]?.trim() ?? '0'
    const plain = (await glibcNeed(await link('plain.so', false))).version
    expect(compareVersions(plain, oldestGlibc) > 0).toBe(compareVersions(here, '2.33') > 0)
  })
})
