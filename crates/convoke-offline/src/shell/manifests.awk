# Lines of manifests and settings that name a testing framework. A comment names none.
FNR == 1 {
  split("", told); n = FILENAME; sub(/.*\//, "", n); print "N\tmanifests\t1"
  if (n == "pytest.ini") said("pytest")
  if (n ~ /^jest[.]config[.]/) said("jest")
  if (n ~ /^vitest[.]config[.]/) said("vitest")
  if (n ~ /^playwright[.]config[.]/) said("playwright")
  if (n ~ /^cypress[.]config[.]/) said("cypress")
  if (n ~ /^[.]mocharc/) said("mocha")
  if (n == ".rspec") said("rspec")
  if (n ~ /^phpunit[.]xml/) said("phpunit")
  if (n ~ /[.]bats$/) said("bats")
}
function said(kind) { if (!(kind in told)) { told[kind] = 1; item(2, kind, FILENAME, FNR, FNR, $0) } }
/^[ \t]*(#|\/\/|;|<!--)/ { next }
n == "Cargo.toml" { if (match($0, /^(rstest|proptest|quickcheck|insta)[ \t.=]/)) { k = substr($0, 1, RLENGTH - 1); said(k) } next }
n == "package.json" {
  if ($0 ~ /"jest"[ \t]*:/) said("jest")
  if ($0 ~ /"vitest"[ \t]*:/) said("vitest")
  if ($0 ~ /"mocha"[ \t]*:/) said("mocha")
  if ($0 ~ /"ava"[ \t]*:/) said("ava")
  if ($0 ~ /"jasmine"[ \t]*:/) said("jasmine")
  if ($0 ~ /"cypress"[ \t]*:/) said("cypress")
  if ($0 ~ /"@playwright\/test"[ \t]*:/) said("playwright")
  if ($0 ~ /node[ \t]+--test/) said("node_test")
  next
}
n ~ /^(pyproject[.]toml|setup[.](cfg|py)|tox[.]ini|Pipfile|noxfile[.]py|requirements.*[.]txt)$/ {
  if ($0 ~ /(^|[^A-Za-z0-9_-])pytest([^A-Za-z0-9_]|$)/) said("pytest")
  if ($0 ~ /(-m[ \t]+|["\047])unittest/) said("unittest")
  if ($0 ~ /(^|[^A-Za-z0-9_])hypothesis([^A-Za-z0-9_]|$)/) said("hypothesis")
  next
}
n == "go.mod" { if ($0 ~ /stretchr\/testify/) said("testify"); if ($0 ~ /onsi\/ginkgo/) said("ginkgo"); next }
n ~ /^(pom[.]xml|build[.]gradle([.]kts)?|libs[.]versions[.]toml)$/ {
  if ($0 ~ /junit/) said("junit")
  if ($0 ~ /testng/) said("testng")
  if ($0 ~ /spock/) said("spock")
  if ($0 ~ /kotest/) said("kotest")
  next
}
n ~ /^Gemfile$|[.]gemspec$/ { if ($0 ~ /["\047]rspec/) said("rspec"); if ($0 ~ /["\047]minitest/) said("minitest"); next }
n == "composer.json" { if ($0 ~ /"phpunit\/phpunit"/) said("phpunit"); if ($0 ~ /"pestphp\/pest"/) said("pest"); next }
n ~ /[.]csproj$/ { if ($0 ~ /"xunit/) said("xunit"); if ($0 ~ /"NUnit"/) said("nunit"); if ($0 ~ /"MSTest/) said("mstest"); next }
n == "CMakeLists.txt" { if ($0 ~ /GTest|gtest|googletest/) said("googletest"); if ($0 ~ /Catch2/) said("catch2"); if ($0 ~ /enable_testing/) said("ctest"); next }
