// What builds the pages: sources with their checksums, bundles, files that are written or compared.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const web = dirname(fileURLToPath(import.meta.url));
const checking = process.argv.includes("--check");

/** A file of the repository, with the line ends of all systems but one. */
export const read = (path) => readFileSync(join(web, "..", path), "utf8").replaceAll("\r", "");

/** FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/ */
export function fnv(text) {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text, "utf8")) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  return hash.toString(16).padStart(16, "0");
}

/** All files below a folder of the repository. */
export const below = (folder) =>
  readdirSync(join(web, "..", folder), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? below(`${folder}/${entry.name}`) : [`${folder}/${entry.name}`],
  );

/** The words that `cargo xtask web` checks: checksums of the sources, in the order of their names, and of what they make. */
export function checksums(sources, body) {
  const of = [...sources, "web/bundle.mjs"].sort().map((path) => `${path}\0${read(path)}\0`);
  return `sources ${fnv(of.join(""))} body ${fnv(body)} -->\n`;
}

const OPTIONS = {
  absWorkingDir: web,
  bundle: true,
  minify: true,
  write: false,
  target: ["chrome115", "firefox120", "safari17.5"],
  charset: "ascii",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".svg": "dataurl" },
};

/** A script or style with all that it imports. */
export async function bundle(entry, options = {}) {
  const result = await build({ ...OPTIONS, entryPoints: [entry], format: "iife", ...options });
  return result.outputFiles[0].text.trim();
}

/** Modules that load each other from the same folder, by name; `shared` is what they have in common. */
export async function split(entries, shared) {
  const result = await build({ ...OPTIONS, entryPoints: entries, format: "esm", splitting: true, outdir: "dist", chunkNames: shared });
  return Object.fromEntries(result.outputFiles.map((file) => [basename(file.path, ".js"), file.text.trim()]));
}

/** Writes a file of web/; with --check says that it is stale. */
export function put(path, text) {
  const full = join(web, path);
  let there = "";
  try {
    there = readFileSync(full, "utf8");
  } catch {
    // Not there yet.
  }
  if (there === text) return;
  if (checking) {
    console.error(`web/${path} is stale: run \`npm ci && npm run build\` in web/`);
    process.exitCode = 1;
  } else {
    writeFileSync(full, text);
    console.log(`web/${path}: written`);
  }
}
