// A certified OpenID Connect provider (npm oidc-provider) on loopback, for the tests: everybody comes in under the name
// that they give. Prints its issuer and serves until its input ends.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, client] = process.argv.slice(2);
const module = createRequire(`${folder}/`).resolve("oidc-provider");
const { Provider } = await import(pathToFileURL(module));

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [JSON.parse(client)],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["preferred_username"], groups: ["groups"] },
    scopes: ["openid", "email", "profile", "groups"],
    pkce: { required: () => true },
    features: { rpInitiatedLogout: { enabled: true } },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({
        sub: id,
        preferred_username: id,
        email: `${id}@example.org`,
        email_verified: true,
        groups: ["assistant"],
      }),
    }),
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
process.stdin.resume();
process.stdin.on("end", () => process.exit());
