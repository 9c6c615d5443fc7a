// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code of other files.
import type { MutationGroup } from "./mutation.ts";

/** Mutations of what protects secrets and buyers' data. */
export const secretMutations: readonly MutationGroup[] = [
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
    file: "payments/webhooks/webhook-endpoints.ts",
    tests: ["test/integration/payments/webhooks/deliver.test.ts"],
    mutations: [
      {
        name: "a leaked secret keeps signing after a rotation with now",
        find: "options.now ? noPreviousSecret : previous",
        replace: "previous",
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
];
