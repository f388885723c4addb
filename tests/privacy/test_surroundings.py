"""What stands around a value decides whether it is a secret: names, sentences, tables, code."""

from __future__ import annotations

import pytest

from rmem.privacy.scanner import scan

VALUE = "3kx19qpx748ldb75lsjicbs6ipit6ssm"
SECRETS = [
    f'godaddyKey: "{VALUE}"',
    f"[DEBUG] Using Key={VALUE}",
    f"https://api.example.com/v1/users?key={VALUE}",
    f"thinkific token - '{VALUE}'",
    f"token = ' {VALUE} '",
    f"apiKey |{VALUE}",
    f"<secret>{{mailer AQAAABAAA {VALUE}}}</secret>",
    f"Your API2CART key is {VALUE}, which you will need",
    f"graphhopper_secret = {VALUE}",
    f"[DEBUG] Using token {VALUE}",
]
RANDOM = "hnNIvpj0lNNChF5z5sAzsgku4CuL0u"
OTHERS = [
    '"Reset password": "パスワードのリセット"',
    '\t"Password": "Salasana",',
    '\t"Incorrect password": "用户名或密码错误",',
    "--file.private-key='rsa.4096.pem'",
    'Password password `json:"staticPasswords"`',
    "PASSWORD=$(sudo cat /run/secret)",
    "data.EditPassword = &entry",
    "oauth2clientDescSecret := oauth2clientFields[1].Descriptor()",
    "opts.Cookie.Secret = base64CookieSecret",
    "Secret: testBASE32TOTPSecret,",
    "authentication_backend: file: password: argon2",
    'case "${MVNW_PASSWORD:+has-password}"',
    "NULL:!MD5:!PSK:!aECDH:!EDH-DSS-DES-CBC3-SHA",
    'shared-password = "jupyterhub.authenticators.shared:SharedPasswordAuthenticator"',
    "TOKEN_ENDPOINT=/api/oidc/token\nOAUTH2_USERINFO_ENDPOINT=/api/oidc/userinfo",
    "'@inquirer/password': 4.0.23(@types/node@25.9.5)",
    "return file_api_v2_api_proto_rawDescGZIP(), []int{0}",
    'Bind("datastore.password", "OPENFGA_DATASTORE_PASSWORD")',
    '{"key": "Q-52ee0e33-980f-4a19-9821-39533b2d1c"}',
    'cache_key = "3kx19qpx748ldb75lsjicbs6ipit6ssm"',
    "pub fn set_password(&mut self, password: Option<&str>) {",
    'json_object["viewPassword"] = json!(!hide_passwords);',
    "@user = create_user(password: @password, admin: true)",
    'password: "#/components/schemas/updateFlowWithPassword"',
    '"change_password": "5/m/user"',
    "'reset_password': 'allauth.account.forms.ResetPasswordForm'",
    '"install.mailer_password": "SMTP-Passwort"',
    '"client_secret": f"{CLEARTEXT_SECRET}_so_wrong"',
    "export SECRET_KEY=\"$(python -c 'import secrets; print(secrets.token_urlsafe(32))')\"",
    "secret: urn:k8s:secret:name:key1",
    "  tls.crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUMvekNDQWVlZ0F3SUJBZ0lKQUw4NThwY2k1WHlqTUE0R0ExVUVBd3dI",
    'const testKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICV0MGX/W9IvLA4FXpIuUcdDcbj5KX4syHgsTy7soVgf"',
    "date -u '+%Y-%m-%d_%I:%M:%S%p'",
    "r.acceptOAuth2LoginRequest = &request",
    '"access_token": "2022-08-25T09:26:05Z"',
    '"node": "Mc1oQWuEQom5uQyCljDEGA"',
    'nkey = "UCARKS2E3KVB7YORL2DG34XLT7PUCOL2SVM7YXV6ETHLW6Z46UUJ2VZ3"',
    'createEncryptionCipher("password", "aes128")',
    'Sequence("PASSWORD", "POLICIES"), Keyword("PASSWORD", "non-reserved")',
    "call assert_fails('pwd', 'E187:')",
    "if (typeof config?.validatePassword === 'function') {",
    '"attribute.password": "패스워드(Password)"',
    "invalidPasswordMinLengthMessage=無効なパスワード: 最小長は{0}です。",
    "password: `a${'b'.repeat(70)}=\\uD83D`",
    "hasPassword := cp.flags&mqttConnFlagPasswordFlag != 0",
    "user.PrivateKey = _mockEncryptedType7String;",
    "storedToken = callInfo.ArgAt<byte[]>(1)",
    "Pwd = cmd_dict2 }",
    'isSelfHosted ? x : passwordKey = "Database:Password"',
    'const string InputPassword = "pm-27086-update-authentication-apis-for-input-password"',
    "LicenseKey:myLicenseKey|MaxCollections:2|MaxStorageGb:100|Name:myOrg",
    "secret: count0-secret",
    "DONT_EXPIRE_PASSWORD = 0x10000L;",
    'options to pass to "rustfmt"',
    "GUEST_TOKEN: 'api/v1/security/guest_token/'",
    "resultsKey: '417149f4-cd27-4f80-91f3-c45c871003f7'",
    "file: password: sha2crypt: option 'variant' must be one of",
    "openssl_x509_check_private_key openssl_x509_checkpurpose openssl_x509_export",
    "- key: 'token'\n  value: '^(abc123|zyx789)$'",
    "curl -u <infinispan_user>:<infinispan_pwd> -s https://rest_url",
    "-u discourse:discourse \\",
    'curl -X GET --user "api:YOUR_API_KEY"',
    "modernc.org/token v1.0.0/go.mod h1:UGzOrNV1mAFSEB63lOFHIpNRUVMvYTc6yu1SMY/XTDM=",
    'provider.zoneIDs[token] = "e74d0d15-f567-4b7b-9069-26ee1f93bae3"',
    "confirm_password: Inserta·nche sa crae atuale pro verificare",
    "Removing topic bar with ID 97FBD1g4QyyNNZNY94bkRA from the metadata cache",
    'recaptcha_site_key = "6LeIxAcTAAAAAJcZVRqyHh71UMIEGNQ_MXjiZKhI"',
    "s3_secret_access_key = @options[:s3_secret_access_key]",
    'get "/:secret" => "public#post_transcript"',
    '("social_auth", "0002_add_related_name"),',
    'src="./react_prod_combined_ccb7d5c4cff728ceadb9996f385b2d09.min.js"',
    'oauth2_client_secret: "Secret del client per a OAuth2 personalitzat"',
    'password: "#{user["password"]}:#{user["salt"]}"',
    "kPR0VyH/AKC0TEkOt5FeNo7N7Y9tlpUkqbrWGfXAmvTPwGSPIog/IvjGnBD5JcUQKSPGB1GhK+jfY",
    'stsLDAPPassword = "LDAPPassword"',
    "User=Usuario\nPassword=Contraseña\n",
    "Key:   UserDNSearchBaseDN,",
    "AWS4-HMAC-SHA256 Credential=minio/20220507/us-east-1/s3/aws4_request, SignedHeaders=host",
    'MetaDataKey = "X-Minio-Internal-Server-Side-Encryption-S3-Kms-Sealed-Key"',
    'password=f"password-{i}"',
    "label textarea:focus,.type-toggle [type=password]:hover,.type-toggle [type=text]:hover",
    "--- PASS: TestBasicL4ExplicitDestinations/relationship:_default/default (0.01s)",
    "create_user(user_password = user_001_password, **ADMIN_CLIENT)",
    "<p>{% trans %}Enter your password to continue.{% endtrans %}</p>",
    "encrypted_key: '0DJjBXri_kBcC46IkU5_Jk9BqaQeHdv2',",
    '"GetRandomPassword": "secretsmanager:GetRandomPassword",',
    "pdbAdminPassword=###ORACLE_PWD###",
    "PASSWORD=O$(openssl rand -base64 6 | tr -d '=+/')_1",
    'RESET_OS_PASSWORD="resetOSPassword.sh" \\',
    'EnvPassword: "me@example.com",',
    "cfg.Passwd = dsn[k+1 : j]",
    "password = fullUser[i+1:]",
    "Set-DomainUserPassword -AccountPassword $NewPassword",
    '<label for="password">Password:</label><input type="password" name="password">',
    'jwt-secret = "@/dev/stdin"',
    "curl 'https://api.example.com/Accounts.json' -u ACCOUNT_SID:AUTH_TOKEN",
    'python ws-harness.py -u "ws://dvws.local:8080/authenticate-user" -m ./message.txt',
    "case 'pbeWithSHAAnd40BitRC4': return 5; break; default: return 0",
    "`token`: [*FlattenedJWSInput*](../interfaces/types.flattenedjwsinput.md)",
    "pass = '\".md5($password,true).\"'",
    "export AWS_SECRET_ACCESS_KEY=fPk/Gya[...]4/j5bSuhDQ",
    'this.options.scrollY="vertical"===this.options.eventPassthrough?1:0',
    'openssl pkcs12 -export -in ca.crt -out ca.p12 -password "pass:$PASSWORD"',
    'args.append(" --pwd ").append(this.pwd);',
    "} else if common.ProcNtWow64ReadVirtualMemory64.Find() == nil {",
    "AdminPassword: '@@FILE:/u01/oracle/adminpass.properties@@'",
    "$key = 'ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBMVMZ';",
    "we moved build_4b78f8494075e310d62dfdcaeb14be2c78fca2fc to the archive yesterday",
    "def test_api_key_creation_fails_on_405_and_raises_system_setup_error(self, es):",
    "withCredentials:s.xhr&&s.xhr.withCredentials?s.xhr.withCredentials:!1},c._duration=0",
    "implementation 'io.example.satoken:quarkus-satoken-resteasy:1.30.0'",
    'secret:"unicode/3299.png?v8",see_no_evil:"x"',
    "MAILU_PASSWORD_SCHEME=SHA512-CRYPT",
    "env[DB_1_ENV_MYSQL_PASSWORD] = $DB_1_ENV_MYSQL_PASSWORD",
    "2. Run [`systemctl --user daemon-reload`][systemd-docs::systemctl::daemon-reload], which",
    "- Decode: `echo 'YmFzZTY0IGVuY29kZWQgc3RyaW5nCg==' | step base64 -d`",
    "ALTER TABLE `value_secret` DROP FOREIGN KEY FKox93sy15f6pgbdr89kp05pnfq;",
    "return password == that!!.password && generationParameters",
    "the answer to toolu_01A09q90qw90lq917835lq9a came late, as it did before",
    "$this->passes(Password::min(2)->max(3), ['aaa'])",
    "$password = $env:PASSWORD",
    'echo "{\\"master_password\\":\\"$$LOCAL_DB_PASSSWORD\\"}" > /hana/password.json',
]
PREFIXED = [
    "abcd_4b78f8494075e310d62dfdcaeb14be2c78fca2fc",
    "qwt-us-loys7ib9yrxcysta2sq85mjar6lgcsspkd9x61s7h5epf",
    "SX.dbawh5BrTlKPwEEKEUF5jA.Wa9EAZnn0zvgcM7UgEYCf9954qWIKpmXil6X5RL2KjQ",
    "zz.pt.4y8g6ottbikn5dpxb7ctna0urb6lea50s8atzigledn",
    "QRRA-e270623d47659ff6a48ac5bde6bba223bef47c8c26",
    "flm2_YblJIGTL0I1ms60Erw9fZxs6VaZAgVgb/2I8oT6CtPzPWhYo3SaMBYHrcTUeGsiCbLPWvB1t5m4pXIaT5f0BC",
]
CHOSEN = [
    ("password: 'sekret',", "sekret"),
    ("postgresql://dbuser:secret@localhost/db", "dbuser:secret"),
    ("    - MYSQL_ROOT_PASSWORD=testrootpassword", "testrootpassword"),
    ("docker run -e POSTGRES_PASSWORD=notused -p 5432:5432 postgres", "notused"),
    ("./deepce.sh --exploit PRIVILEGED --username deepce --password deepce", "deepce"),
    ("$p = ConvertTo-SecureString 'newsecretpass' -AsPlainText -Force", "newsecretpass"),
    (
        '{"kty": "EC", "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf"}',
        "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf",
    ),
    ('apikey = "m{{h}o)p${e]nob(ody[finds>-_$#thisone}}"', "m{{h}o)p${e]nob(ody[finds>-_$#thisone}}"),
]
GENERATED = [
    "stripo-SECRET-123e4567-e89b-12d3-a456-426614174000",
    "datadog-secrettoken-0024a29224affe29d173c0bf99e5a89d",
    "nimble ACCESS 3mL6pHJQ7NMK3v8Z1J6n2L9F6qK2dH",
    "screenshotapi KEY-ABC1234-GHI5678-JKL9012-MNO3456",
    "some_token=test_TK7p9N4Lm2Jx5Vq8WyU3aB1cD6fHjKnRvZ0sE9gYiX4bC",
    "Username=somebody\nPassword=thisismypassword\n",
]


@pytest.mark.parametrize("text", SECRETS)
def test_a_value_that_only_a_machine_writes_is_found_by_its_name(text):
    found = [text[one.start : one.end] for one in scan(text) if one.kind == "secret"]
    assert any(VALUE in one for one in found), found


@pytest.mark.parametrize("text", GENERATED)
def test_a_value_is_found_behind_a_product_and_a_word_for_a_secret(text):
    last = (
        text.strip().replace("=", " ").replace("-SECRET-", " ").replace("token-", " ").replace("KEY-", " ").split()[-1]
    )
    assert [text[one.start : one.end] for one in scan(text) if one.kind == "secret"] == [last]


@pytest.mark.parametrize("text", OTHERS)
def test_translations_files_and_code_are_no_secrets(text):
    assert not [text[one.start : one.end] for one in scan(text) if one.kind == "secret"]


@pytest.mark.parametrize(
    "text", [f"textmagic '{RANDOM}'", f"use {RANDOM}, it works until Friday", f"rotated ({RANDOM}) and told the team"]
)
def test_a_random_word_is_a_secret_in_a_sentence_and_behind_a_name(text):
    assert [text[one.start : one.end] for one in scan(text) if one.kind == "secret"] == [RANDOM]


@pytest.mark.parametrize(
    "text", [f"https://example.com/watch?list={RANDOM}", f"commit id '{RANDOM}'", f"the hash {RANDOM} of it", RANDOM]
)
def test_a_random_word_that_something_explains_is_no_secret(text):
    assert not scan(text)


@pytest.mark.parametrize("token", PREFIXED)
def test_a_token_of_an_unknown_provider_is_found_in_a_sentence_by_its_prefix(token):
    text = f"I put {token} into the vault yesterday."
    assert [text[one.start : one.end] for one in scan(text)] == [token]


@pytest.mark.parametrize("form", ["box_key = {}", "rotated ({}) and told the team"])
def test_hexadecimal_digits_of_both_cases_are_a_key_and_no_hash(form):
    key = "4Fa83E1Dc6b92CAeE780C9b47dd9bE34"
    text = form.format(key)
    assert [text[one.start : one.end] for one in scan(text)] == [key]
    assert not scan(f"rotated ({key.lower()}) and told the team")


@pytest.mark.parametrize(("text", "value"), CHOSEN)
def test_weak_passwords_and_private_parts_of_keys_are_found(text, value):
    assert [text[one.start : one.end] for one in scan(text)] == [value]


@pytest.mark.parametrize(
    "url", ["http://127.1.1.1:80\\@127.2.2.2:80/", "https://google.com:80#@host.example/", "http://a.com:123@b.com"]
)
def test_a_port_before_an_at_sign_is_no_password(url):
    assert not [one for one in scan(url) if one.kind == "url_credentials"]


def test_beside_a_user_every_quoted_word_is_a_password():
    text = "credentials {\n  username 'user'\n  password 'password'\n}"
    assert [text[one.start : one.end] for one in scan(text)] == ["password"]
    assert not scan('{"username": "username", "password": "password"}')
