// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code of other files.
import type { MutationGroup } from "./mutation.ts";

/** Mutations of what protects secrets and buyers' data. */
export const secretMutations: readonly MutationGroup[] = [
  {
    file: "api/http/request-log.ts",
    tests: ["test/integration/api/merchant/request-logs.test.ts"],
    mutations: [
      {
        name: "the request log keeps a key that a caller put into a path",
        find: "scrubText(part)",
        replace: "part",
      },
      {
        name: "the request log keeps the pairing link of a wallet",
        find: "part.length > PART_CHARACTERS",
        replace: "part.length > 10 * PART_CHARACTERS",
      },
      {
        name: "the request log keeps control characters of a path",
        find: 'path.replace(/[^!-~]/g, "?")',
        replace: "path",
      },
    ],
  },
  {
    file: "api/http/observe-requests.ts",
    tests: ["test/integration/api/merchant/request-logs.test.ts"],
    mutations: [
      {
        name: "requests of live mode are logged for their account",
        find: 'caller?.mode !== "test"',
        replace: "!caller",
      },
      {
        name: "anybody who knows an app id fills the request log",
        find: " || caller.keyId === null",
        replace: "",
      },
    ],
  },
  {
    file: "runtime/encryption.ts",
    tests: ["test/unit/runtime/encryption.test.ts"],
    mutations: [
      {
        name: "a ciphertext is not bound to what it belongs to",
        find: "toBytes(Buffer.from(context))",
        replace: "toBytes(Buffer.from(context.slice(0, 0)))",
      },
      {
        name: "a private key decrypts texts of a key with another name",
        find: "keys.find(({ id }) => id === keyId)",
        replace: "keys.find(({ id }) => id !== keyId)",
      },
    ],
  },
  {
    file: "db/queries/collected-data.ts",
    tests: ["test/integration/payments/buyer-data/collected-data-owners.test.ts"],
    mutations: [
      {
        name: "strangers who post later remove a buyer's data that was posted early",
        find: "place > ${EARLIEST} and ",
        replace: "",
      },
      {
        name: "strangers who post earlier block a buyer's data",
        find: "place > ${EARLIEST} and place <= posts - ${LATEST}",
        replace: "place > ${EARLIEST + LATEST}",
      },
      {
        name: "strangers who post earlier and later remove the data of the payment's first requester",
        find: "and requester is distinct from (select requester from payment where id = ${row.payment_id})",
        replace: "",
      },
      {
        name: "a buyer's second post loses the place of the first one",
        find: ".doUpdateSet({ key_id, ciphertext })",
        replace: ".doUpdateSet({ key_id, ciphertext, created_at: row.created_at })",
      },
    ],
  },
  {
    file: "payments/buyer-data/collected-data.ts",
    tests: ["test/integration/payments/buyer-data/collected-data.test.ts"],
    mutations: [
      {
        name: "a buyer's data is not bound to its payment",
        find: "`${payment_id} ${account}`",
        replace: "`${payment_id.slice(0, 0)} ${account}`",
      },
      {
        name: "data that a wallet sends with a confirm is not validated",
        find: 'if (error) return refuse("invalid_params", error);\n    const encrypted',
        replace: "const encrypted",
      },
    ],
  },
  {
    file: "payments/webhooks/endpoint-secrets.ts",
    tests: ["test/integration/payments/webhooks/deliver.test.ts"],
    mutations: [
      {
        name: "a leaked secret keeps signing after a rotation with now",
        find: "options.now ? noPreviousSecret : previous",
        replace: "previous",
      },
      {
        name: "a second operator's rotation ends the webhook secret that is deployed",
        find: "args.keepsFormer ? refuseToEndFormer(row.previous_until, deps.now()) : undefined",
        replace: "undefined as ReturnType<typeof refuseToEndFormer>",
        tests: ["test/integration/ops/admin/admin-commands.test.ts"],
      },
    ],
  },
  {
    file: "runtime/config.ts",
    tests: ["test/unit/runtime/config.test.ts"],
    mutations: [
      {
        name: "a variable that is set twice takes the file's value",
        find: "if (value !== undefined) throw",
        replace: "if (value === file) throw",
      },
    ],
  },
  {
    file: "ops/preflight/keys.ts",
    tests: ["test/unit/ops/preflight/keys.test.ts"],
    mutations: [
      {
        name: "preflight demands the treasury's key on the workers' machine",
        find: "if (isNeeded === false) return",
        replace: "if (isNeeded === null) return",
      },
      {
        name: "preflight passes on the signer's machine without the treasury's key",
        find: '(owner === "signer" ? SIGNER_LISTEN : SIGNER) !== undefined',
        replace: '(owner === "signer" ? undefined : SIGNER) !== undefined',
      },
      {
        name: "preflight passes without the treasury's key where a worker holds it",
        find: 'if (SIGNER === "embedded") return true;',
        replace: "",
      },
      {
        name: "preflight passes without a key where nothing says whose machine this is",
        find: "if (SIGNER === undefined && SIGNER_LISTEN === undefined) return undefined;",
        replace: "",
      },
      {
        name: "preflight advises to provide a treasury's key where nothing says whose machine this is",
        find: "if (isNeeded || !(error instanceof ConfigError)) throw error;",
        replace: "throw error;",
      },
      {
        name: "preflight does not notice a treasury's key on the workers' machine",
        find: "if (!(await signs().catch(() => false)))",
        replace: "if (signs)",
      },
    ],
  },
];
