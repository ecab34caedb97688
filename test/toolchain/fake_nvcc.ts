/** A stand-in for nvcc that prints ptxas reports, so that checks and records are tested without CUDA. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { vi } from 'vitest'
import { cubinOf } from './cubin_bytes.js'
import { testProject } from './project.js'

/**
 * Prints its request and its source together with a ptxas report, and writes a cubin. Refuses sources with WRONG; those with SPILL spill on sm_80.
 * The source states the number of registers.
 */
const nvcc = (cubin: string, version = '1.0'): string => `[ "$1" = --version ] && { echo "fake ${version}, release 1"; exit 0; }
for last; do case "$last" in *.cu) source=$last;; esac; done
grep -q WRONG "$source" && { echo "error: this is wrong" >&2; exit 1; }
case "$*" in *sm_80*) arch=sm_80;; *) arch=sm_90a;; esac
stores=0; [ $arch = sm_80 ] && grep -q SPILL "$source" && stores=8
echo "$*" >&2; cat "$source" >&2
for text in $(sed -n 's/^int \\(.*\\);$/\\1/p' "$source"); do cat >&2 <<END
ptxas info    : Compiling entry function '_ZN$(printf %s instance_of_$text | wc -c)instance_of_\${text}4spinEv' for '$arch'
ptxas info    : Function properties for _ZN$(printf %s instance_of_$text | wc -c)instance_of_\${text}4spinEv
    0 bytes stack frame, $stores bytes spill stores, $stores bytes spill loads
ptxas info    : Used 32 registers, 16 bytes smem
END
done
cp ${cubin} "$last"`

/** A project with sources, and such an nvcc until `vi.unstubAllEnvs`. */
export async function projectWithNvcc(texts: Readonly<Record<string, string>>, code: Parameters<typeof cubinOf>[1] = {}) {
  const project = await testProject(texts)
  const cubin = join(project.root, 'object.cubin')
  await writeFile(cubin, cubinOf({ _ZN18instance_of_a__f164spinEv: 96 }, code))
  const install = async (version?: string) => vi.stubEnv('HEDDLE_NVCC', await project.script('nvcc', nvcc(cubin, version)))
  await install()
  return { project, generated: join(project.root, 'generated'), install }
}
